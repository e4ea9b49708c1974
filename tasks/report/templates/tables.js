// A table that does not fit becomes a card a row, with each value under the name of its column.
const widths = new WeakMap();

function fit(place) {
  const width = place.clientWidth, table = place.firstElementChild;
  const known = widths.get(place);
  const fits = place.classList.contains("stacked") || place.scrollWidth <= width + 1;
  if (!width || !table || (fits && known?.width === width && known.table === table)) return;
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

const wide = new ResizeObserver((entries) => {
  for (const place of new Set(entries.map(({ target }) => target.closest(".scroll")))) if (place) fit(place); // a table that was replaced is in none
});
function fitTables(within = document) {
  for (const place of within.querySelectorAll(".scroll")) {
    for (const one of [place, place.firstElementChild]) if (one) wide.observe(one); // other words or fonts widen a table, too
    fit(place);
  }
}
addEventListener("resize", () => fitTables());
fitTables();
