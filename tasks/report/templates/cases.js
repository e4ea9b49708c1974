// The list of cases of a tier: searched, filtered, sorted, in pages; its state stands in the address.
const PAGE = 50;
const lists = new Map();

/** Column-wise data as functions from a row's number to its value. */
function reader(columns) {
  const get = {};
  for (const [name, values] of Object.entries(columns)) {
    get[name] = Array.isArray(values) ? (i) => values[i] : (i) => (values.codes[i] === null ? null : values.texts[values.codes[i]]);
  }
  return get;
}

/** Control characters and direction marks made visible, as they would otherwise mislead or vanish. */
function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => `‹${c.charCodeAt(0).toString(16)}›`);
}

/** Why a case was not measured, in the language of the page. */
function because(reason, said = data.reasons) {
  return visible((root.lang === "ru" && said[reason]) || reason);
}

function openList(key) { return remembered(lists, key, openedList); }
async function openedList(key) {
  const about = data.cases[key];
  const get = reader(await unpack(`rows-${key}`));
  const list = { key, about, get, n: about.n, sort: null, down: false, page: 0, filter: {}, found: [], mount, show };
  list.title = (i) => get.question?.(i) || get.text?.(i) || get.case_id(i);
  const searched = ["case_id", "question", "text", "answer", "reference", "reason"].filter((name) => get[name]).map((name) => get[name]);
  if (get.reason) searched.push((i) => data.reasons[get.reason(i)]);
  let haystack = null;
  list.haystack = () => (haystack ??= Array.from({ length: about.n }, (_, i) => searched.map((of) => of(i) ?? "").join("\n").toLocaleLowerCase()));
  return list;
}

function matching(list) {
  const { filter, get } = list;
  const words = (filter.q ?? "").toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const text = words.length ? list.haystack() : null;
  const [low, high] = [filter.min, filter.max].map((text) => (text ? Number(text) : null));
  const value = filter.metric ? get[filter.metric] : null;
  const found = [];
  for (let i = 0; i < list.n; i++) {
    if (filter.status && get.status(i) !== filter.status) continue;
    if (filter.failure && get.failure?.(i) !== filter.failure) continue;
    if (filter.stratum && get.stratum?.(i) !== filter.stratum) continue;
    if (value && (low !== null || high !== null)) {
      const v = value(i);
      if (v == null || (low !== null && v < low) || (high !== null && v > high)) continue;
    }
    if (text && !words.every((w) => text[i].includes(w))) continue;
    found.push(i);
  }
  if (list.sort) {
    const by = list.sort === "question" ? list.title : get[list.sort];
    const sign = list.down ? -1 : 1;
    const missing = (v) => v == null;
    found.sort((a, b) => {
      const x = by(a), y = by(b);
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), root.lang));
    });
  }
  return found;
}

/** What of a list stands on the page that is open; its pager turns to the others. */
function paged(list, size, [earlier, later], place) {
  const pages = Math.max(1, Math.ceil(list.found.length / size));
  list.page = Math.min(list.page, pages - 1);
  const first = list.page * size, shown = list.found.slice(first, first + size);
  const turn = (by) => () => { list.page += by; list.show(list); place.scrollIntoView({ block: "nearest" }); };
  list.pager.replaceChildren(
    make("button", { type: "button", disabled: list.page === 0, onclick: turn(-1) }, word(earlier)),
    make("span", {}, word("page", { from: shown.length ? first + 1 : 0, to: first + shown.length, of: list.found.length })),
    make("button", { type: "button", disabled: list.page >= pages - 1, onclick: turn(1) }, word(later)));
  list.pager.hidden = pages === 1;
  return shown;
}

function filterBy(list, name, value) {
  list.filter[name] = value;
  list.page = 0;
  list.show(list);
}
/** A filter of a list, with what may be chosen: values and their texts. */
function choices(list, name, label, options) {
  const element = make("select", { onchange: () => filterBy(list, name, element.value) }, ...options.map(([value, text]) => make("option", { value }, text)));
  element.value = list.filter[name] ?? options[0][0];
  return make("label", {}, label, element);
}

function controls(list) {
  const distinct = (name) => [...new Set(Array.from({ length: list.n }, (_, i) => list.get[name](i)))].filter((v) => v != null).sort();
  const change = (name) => (event) => filterBy(list, name, event.target.value);
  const any = ["", word("any")];
  const valued = (name) => choices(list, name, word(name), [any, ...distinct(name).map((value) => [value, word(`${name} ${value}`)])]);
  const search = make("input", { type: "search", value: list.filter.q ?? "", oninput: change("q"), autocomplete: "off" });
  const fields = [make("label", {}, word("search"), search), ...["status", "failure", "stratum"].filter((name) => list.get[name]).map(valued)];
  fields.push(choices(list, "metric", word("metric"), [any, ...list.about.numbers.map((name) => [name, name])]));
  for (const [name, label] of [["min", "from"], ["max", "to"]]) {
    fields.push(make("label", { class: "narrow" }, word(label), make("input", { type: "number", step: "any", value: list.filter[name] ?? "", oninput: change(name) })));
  }
  fields.push(make("button", { type: "button", onclick: () => { list.filter = {}; list.sort = null; list.page = 0; mount(list); show(list); } }, word("reset")));
  return make("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() }, ...fields);
}

/** Builds the list's frame; its rows are put in by show. */
function mount(list) {
  const place = document.querySelector(`.list[data-key="${CSS.escape(list.key)}"]`);
  list.status = make("p", { class: "soft", role: "status" });
  list.body = make("div", { class: "scroll", tabindex: "0" });
  list.pager = make("div", { class: "pager" });
  place.replaceChildren(controls(list), list.status, list.body, list.pager);
}

function heading(list, name, label) {
  const sorted = list.sort === name ? (list.down ? "descending" : "ascending") : null;
  const sort = () => { list.down = list.sort === name && !list.down; list.sort = name; show(list); };
  return make("th", { scope: "col", "aria-sort": sorted, class: list.get[name] && list.about.numbers.includes(name) ? "num" : null },
    make("button", { type: "button", onclick: sort }, label));
}

function row(list, i) {
  const { get, about } = list;
  const status = get.status(i), failure = get.failure?.(i);
  const text = visible(list.title(i)).slice(0, 300);
  const link = make("a", { href: address(list, i), dir: "auto", class: "text" }, text);
  const said = failure ? word(`failure ${failure}`) : word(`status ${status}`);
  const shown = about.shown.map((name) => make("td", { class: "num" }, number(get[name](i))));
  const times = list.times.get(i);
  return make("tr", {}, make("td", { class: "q" }, link, times > 1 ? make("b", {}, ` ×${times}`) : "", get.turn?.(i) > 1 ? make("small", {}, ` ${word("turn", { n: get.turn(i) })}`) : ""), ...shown,
    make("td", { class: failure ? "st bad" : "st off" }, said));
}

/** Each question once, where its cases have the same status, with how many there are. */
function once(list, found) {
  const { get } = list;
  const first = new Map();
  for (const i of found) {
    const asked = (get.question?.(i) ?? "").toLocaleLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).join(" ");
    // A follow-up question is another one in another dialog, in the same words.
    const key = asked && !(get.turn?.(i) > 1) ? `${get.status(i)} ${get.failure?.(i)} ${asked}` : i;
    if (first.has(key)) first.get(key).n += 1;
    else first.set(key, { i, n: 1 });
  }
  list.times = new Map([...first.values()].map(({ i, n }) => [i, n]));
  return [...list.times.keys()];
}

function show(list) {
  const cases = matching(list);
  list.found = once(list, cases);
  const shown = paged(list, PAGE, ["earlier", "later"], list.body);
  list.status.textContent = cases.length ? word("found", { n: cases.length, of: list.n }) : word("none found");
  const head = make("tr", {}, heading(list, "question", word(list.about.texts ? "text" : "question")), ...list.about.shown.map((name) => heading(list, name, name)), heading(list, "status", word("status")));
  list.body.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...shown.map((i) => row(list, i)))));
  fitTables(list.body.parentElement);
  remember(list);
}

function query(list) {
  const kept = Object.entries({ ...list.filter, sort: list.sort, down: list.sort && list.down ? "1" : "" }).filter(([, value]) => value);
  return kept.length ? "?" + new URLSearchParams(kept) : "";
}
function address(list, i) { return `#${list.key}/case/${encodeURIComponent(list.get.case_id(i))}${query(list)}`; }
function remember(list) {
  if (route().page === list.key && route().part === "cases") keepInAddress(`#${list.key}/cases${query(list)}`);
}
