// Evaluations that are chosen in the list, on whatever page of it, to be shown together.
const CHOSEN = "yarus-chosen";
const MOST = 8;
const place = document.querySelector(".chosen");
const chosen = new Map(kept(CHOSEN) ?? []);
const boxes = [...document.querySelectorAll("td.pick input")];

function choice() {
  const ids = [...chosen.keys()], tiers = new Set(chosen.values());
  keep(CHOSEN, [...chosen]);
  for (const box of boxes) { box.checked = chosen.has(box.value); box.disabled = !box.checked && ids.length >= MOST; }
  place.hidden = !ids.length;
  document.querySelector("main").classList.toggle("picking", Boolean(ids.length));
  if (!ids.length) return;
  const clear = make("button", { type: "button", onclick: () => { chosen.clear(); choice(); } }, word("clear choice"));
  const told = ids.length === 1 ? word("choose another") : tiers.size > 1 ? word("other tiers") : "";
  place.replaceChildren(make("b", {}, word("chosen", { n: ids.length })), ...(ids.length > 1 ? action(ids, tiers) : []), clear,
    told ? make("p", { class: "soft" }, told) : "");
}

/** With a server: the page; without one: the command that writes it. */
function action(ids, tiers) {
  const query = ids.map((id) => `of=${encodeURIComponent(id)}`).join("&");
  const at = tiers.size === 1 ? `#${[...tiers][0]}/compare` : "";
  if (root.dataset.now !== undefined) {
    return [make("button", { type: "button", class: "do", onclick: () => location.assign(`report.html?${query}${at}`) }, word(tiers.size === 1 ? "compare chosen" : "show chosen"))];
  }
  const command = `yarus report ${ids.join(" ")}`;
  const copy = make("button", { type: "button", class: "do", onclick: () => {
    navigator.clipboard?.writeText(command).then(() => { copy.textContent = word("copied"); }, () => {});
  } }, word("copy"));
  return [make("code", {}, command), copy];
}

for (const box of boxes) {
  box.addEventListener("change", () => {
    if (box.checked) chosen.set(box.value, box.dataset.tier); else chosen.delete(box.value);
    choice();
  });
}
document.addEventListener("chosen", choice);
if (place) choice();
document.querySelector("[data-print]")?.addEventListener("click", () => print());
