// Addresses: #page, #page/part, #page/cases?filters, #page/case/ID, #page/changed/ID, #page/rows?filters.
function route() {
  const [path, search = ""] = location.hash.slice(1).split("?");
  const [page = "", part = "", id = ""] = path.split("/");
  const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  return { page: decoded(page) || "overview", part, id: decoded(id), filters: Object.fromEntries(new URLSearchParams(search)) };
}

let followed = null;
/** Puts what is chosen into the address; one that somebody has set meanwhile is followed first, and not lost. */
function keepInAddress(hash) {
  if (location.hash !== followed) return;
  history.replaceState(null, "", hash);
  followed = location.hash;
}

let current = null;
async function follow() {
  followed = location.hash;
  const { page, part, id, filters } = route();
  const section = document.querySelector(`[data-page="${CSS.escape(page)}"]`) ?? document.getElementById("overview");
  const moved = section !== current;
  current = section;
  for (const one of document.querySelectorAll(".page")) one.classList.toggle("open", one === section);
  for (const link of document.querySelectorAll("nav.tabs a")) {
    const here = link.hash === "#" + section.dataset.page;
    if (here) { link.setAttribute("aria-current", "page"); document.querySelector(".menu .here").replaceChildren(...link.cloneNode(true).childNodes); }
    else link.removeAttribute("aria-current");
  }
  if (moved) showMenu(false);
  const isCase = part === "case" || part === "changed";
  if (moved && !part) scrollTo(0, 0);
  const isMatrix = Boolean(data.answers?.[page]);
  if (isMatrix) await fillMatrix(section, part === "rows" || part === "case" ? filters : null);
  if (section.dataset.tier) await fill(section, part === "cases" || part === "case" ? filters : null);
  if (part === "case" && isMatrix) await showAnswers(page, id);
  else if (part === "case") await showCase(page, id, filters);
  else if (part === "changed") await showChanged(page, id);
  if (!isCase) {
    const back = dialog.open && dialog.origin === part && !moved;
    if (dialog.open) dialog.close();
    if (part && !back) section.querySelector(`[data-part="${CSS.escape(part)}"]`)?.scrollIntoView();
  }
}

/** On a narrow screen the pages are listed on demand. */
const menu = document.querySelector(".menu");
function showMenu(open) { menu.setAttribute("aria-expanded", String(open)); }
menu.addEventListener("click", () => showMenu(menu.getAttribute("aria-expanded") !== "true"));

/** Puts the cases and the changed cases of a tier into its page. */
async function fill(section, filters) {
  const key = section.dataset.page;
  if (!("DecompressionStream" in window)) {
    section.querySelector(".list")?.replaceChildren(make("p", { class: "problem" }, word("cannot open")));
    return;
  }
  if (data.cases[key]) {
    const list = await openList(key);
    const { sort = null, down = "", ...rest } = filters ?? {};
    const fresh = !list.body;
    if (filters && (fresh || query(list) !== location.hash.replace(/^[^?]*/, ""))) { list.filter = rest; list.sort = list.get[sort] ? sort : null; list.down = Boolean(down); list.page = 0; mount(list); show(list); }
    else if (fresh) { mount(list); show(list); }
  }
  await showLists(key);
}

async function relabel(event) {
  if (event.detail !== "lang") return;
  document.title = data.titles[root.lang];
  for (const promise of [...lists.values(), ...matrices.values()]) { const list = await promise; if (list.body) { list.mount(list); list.show(list); } }
  for (const place of document.querySelectorAll(".changes[data-list]")) await showLists(place.dataset.key);
  if (dialog.open) await follow();
}
document.addEventListener("chosen", relabel);
addEventListener("hashchange", follow);
follow();
