// A table that does not fit becomes a card a row, with each value under the name of its column.
const widths = new WeakMap();

function fit(place) {
  const width = place.clientWidth, table = place.firstElementChild;
  const known = widths.get(place);
  if (!width || !table || (known?.width === width && known.table === table)) return;
  widths.set(place, { width, table });
  place.classList.remove("stacked");
  if (place.scrollWidth > width + 1) {
    named(table);
    place.classList.add("stacked");
  }
}

/** Puts the names of the columns beside the values, once; without cells that span several. */
function named(table) {
  if (table.dataset.named) return;
  table.dataset.named = "1";
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  for (const row of table.tBodies[0]?.rows ?? []) {
    for (const cell of row.querySelectorAll("td")) {
      const head = heads[cell.cellIndex];
      if (!head?.textContent.trim() || !cell.hasChildNodes()) continue;
      const name = document.createElement("span"), value = document.createElement("span");
      name.className = "column";
      name.append(...(head.querySelector("button") ?? head).cloneNode(true).childNodes);
      value.className = "value";
      value.append(...cell.childNodes);
      cell.append(name, value);
    }
  }
}

const wide = new ResizeObserver((entries) => { for (const { target } of entries) fit(target); });
function fitTables(within = document) {
  for (const place of within.querySelectorAll(".scroll")) { wide.observe(place); fit(place); }
}
addEventListener("resize", () => fitTables());
fitTables();
