// Answers side by side: a row a common question, a column an evaluation; its state stands in the address.
const ROWS = 25;
const matrices = new Map();

function openMatrix(key) { return remembered(matrices, key, openedMatrix); }
async function openedMatrix(key) {
  const about = data.answers[key];
  const columns = await Promise.all(about.columns.map(async (column) => ({ ...column, get: (await openList(column.key)).get, n: data.cases[column.key].n })));
  const places = columns.map(({ get, n }) => new Map(Array.from({ length: n }, (_, i) => [get.case_id(i), i])));
  const rows = [...places[0].keys()].filter((id) => places.every((of) => of.has(id))).map((id) => ({ id, at: places.map((of) => of.get(id)) }));
  const apart = new Set(places.flatMap((of) => [...of.keys()])).size - rows.length;
  const each = (row, name) => columns.map(({ get }, c) => get[name]?.(row.at[c]) ?? null);
  const searched = ["case_id", "question", "reference"];
  for (const row of rows) {
    row.text = [...searched.map((name) => columns[0].get[name]?.(row.at[0]) ?? ""), ...each(row, "answer")].join("\n").toLocaleLowerCase();
    row.said = new Set(each(row, "answer").map((answer) => (answer ?? "").trim().replace(/\s+/g, " "))).size;
  }
  return { key, about, columns, rows, apart, each, filter: {}, page: 0, found: [], mount: mountMatrix, show: showMatrix };
}

function metricOf(m) { return m.about.metrics.find(({ name }) => name === m.filter.metric) ?? m.about.metrics[0] ?? { name: null, better: "neither" }; }

/** How far apart the evaluations are by a metric; one that was not measured beside one that was is as far as can be. */
function spread(values) {
  const measured = values.filter((v) => v !== null);
  if (!measured.length) return 0;
  return measured.length < values.length ? Infinity : Math.max(...measured) - Math.min(...measured);
}

function rowsFound(m) {
  const { q = "", differ, status, sort } = m.filter, metric = metricOf(m).name;
  const words = q.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const found = m.rows.filter((row) => (!differ || (differ === "answers" ? row.said > 1 : spread(m.each(row, metric)) > 1e-9))
    && (!status || m.each(row, "status").includes(status)) && words.every((w) => row.text.includes(w)));
  if (sort) {
    const far = new Map(found.map((row) => [row, spread(m.each(row, metric))]));
    found.sort((a, b) => (far.get(b) === far.get(a) ? 0 : far.get(b) - far.get(a)));
  }
  return found;
}

/** By a metric, which of a row's values are the best and the worst; none where they do not differ. */
function standings(values, better) {
  const measured = values.filter((v) => v !== null), high = Math.max(...measured), low = Math.min(...measured);
  if (measured.length < 2 || high - low < 1e-9 || better === "neither") return values.map(() => null);
  const [best, worst] = better === "lower" ? [low, high] : [high, low];
  return values.map((v) => (v === best ? "best" : v === worst ? "worst" : null));
}

function matrixQuery(m) {
  const kept = Object.entries(m.filter).filter(([, value]) => value);
  return kept.length ? "?" + new URLSearchParams(kept) : "";
}

function mountMatrix(m) {
  const place = document.querySelector(`.matrix[data-key="${CSS.escape(m.key)}"]`);
  if (!m.rows.length) { place.replaceChildren(make("p", { class: "problem" }, word("no common"))); return; }
  const statuses = [...new Set(m.rows.flatMap((row) => m.each(row, "status")))].sort();
  const search = make("input", { type: "search", value: m.filter.q ?? "", autocomplete: "off", oninput: () => filterBy(m, "q", search.value) });
  const sort = make("input", { type: "checkbox", onchange: () => filterBy(m, "sort", sort.checked ? "1" : "") });
  sort.checked = Boolean(m.filter.sort);
  m.status = make("p", { class: "soft", role: "status" });
  m.body = make("div", { class: "scroll", tabindex: "0" });
  m.pager = make("div", { class: "pager" });
  place.replaceChildren(make("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    make("label", {}, word("search"), search),
    choices(m, "differ", word("show rows"), [["", word("all rows")], ["answers", word("answers differ")], ["scores", word("scores differ")]]),
    choices(m, "metric", word("metric"), m.about.metrics.map(({ name }) => [name, name])),
    choices(m, "status", word("status"), [["", word("any")], ...statuses.map((status) => [status, word(`status ${status}`)])]),
    make("label", { class: "tick" }, sort, word("farthest first"))), m.status, m.body, m.pager);
}

/** An evaluation's means over the common questions, each with how many of them were measured. */
function means(m, c) {
  const names = [...new Set([metricOf(m).name, ...m.about.shown])].filter(Boolean);
  return names.map((name) => {
    const measured = m.rows.map((row) => m.columns[c].get[name]?.(row.at[c]) ?? null).filter((v) => v !== null);
    const mean = measured.length ? measured.reduce((sum, v) => sum + v, 0) / measured.length : null;
    return make("span", { class: "headline" }, `${name} `, make("b", {}, number(mean)), ` (${measured.length})`);
  });
}

function columnHead(m, column, c, counts) {
  const { best, worst } = counts[c];
  const told = best + worst ? [make("span", { class: "best" }, `▲ ${best}`), " ", make("span", { class: "worst" }, `▼ ${worst}`)] : [];
  return make("th", { scope: "col" }, make("a", { href: `#${column.key}`, class: "text", dir: "auto" }, visible(column.label || column.about || column.started)),
    make("small", { class: "text", dir: "auto" }, visible([column.label ? column.about : "", column.started].filter(Boolean).join(" · "))),
    make("small", { title: word("common mean") }, ...means(m, c), ...(told.length ? [make("span", { class: "headline" }, ...told)] : [])));
}

function scores(m, row, c, marks) {
  const metric = metricOf(m).name, names = [...new Set([metric, ...m.about.shown])].filter(Boolean);
  return names.map((name) => {
    const mark = name === metric ? marks[c] : null;
    return make("span", { class: mark ?? "", title: mark ? word(mark) : null }, `${name} `, make("b", {}, number(m.each(row, name)[c])), mark ? (mark === "best" ? " ▲" : " ▼") : "");
  });
}

function cell(m, row, c, marks) {
  const { get, key, label, about, started } = m.columns[c], i = row.at[c];
  const status = get.status(i), answer = get.answer?.(i);
  return make("td", { class: marks[c] ?? "" }, make("small", { class: "of text", dir: "auto" }, visible(label || about || started)),
    status === "ok" ? "" : make("p", { class: status.endsWith("_error") ? "st bad" : "st off" }, word(`status ${status}`)),
    answer ? make("p", { class: "said text", dir: "auto" }, visible(answer).slice(0, 1200)) : make("p", { class: "soft" }, word("no answer")),
    make("p", { class: "scores" }, ...scores(m, row, c, marks), make("a", { href: `#${key}/case/${encodeURIComponent(row.id)}`, class: "more" }, word("trace link"))));
}

function showMatrix(m) {
  if (!m.rows.length) return;
  const metric = metricOf(m);
  const marksOf = (row) => standings(m.each(row, metric.name), metric.better);
  m.found = rowsFound(m);
  const counts = m.columns.map(() => ({ best: 0, worst: 0 }));
  for (const row of m.found) marksOf(row).forEach((mark, c) => { if (mark) counts[c][mark] += 1; });
  const shown = paged(m, ROWS, ["earlier page", "later page"], m.status);
  m.status.textContent = [m.found.length ? word("rows found", { n: m.found.length, of: m.rows.length }) : word("none found"), m.apart ? word("not common", { n: m.apart }) : ""].filter(Boolean).join(" ");
  const title = (row) => visible(m.columns[0].get.question?.(row.at[0]) || row.id).slice(0, 400);
  const link = (row) => make("a", { href: `#${m.key}/case/${encodeURIComponent(row.id)}${matrixQuery(m)}`, class: "text", dir: "auto" }, title(row));
  m.body.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, word("question")), ...m.columns.map((column, c) => columnHead(m, column, c, counts)))),
    make("tbody", {}, ...shown.map((row) => { const marks = marksOf(row); return make("tr", {}, make("th", { scope: "row" }, link(row)), ...m.columns.map((_, c) => cell(m, row, c, marks))); }))));
  if (route().page === m.key && route().part !== "case") keepInAddress(`#${m.key}/rows${matrixQuery(m)}`);
}

/** Puts the rows into the page of answers; with filters, as its address has them. */
async function fillMatrix(section, filters) {
  const m = await openMatrix(section.dataset.page);
  if (m.body && (!filters || matrixQuery(m) === `?${new URLSearchParams(filters)}`)) return;
  if (filters) m.filter = { ...filters };
  mountMatrix(m);
  showMatrix(m);
}

/** All answers to one question, whole. */
async function showAnswers(key, id) {
  const m = await openMatrix(key), row = m.rows.find((one) => one.id === id);
  if (!row) return openDialog([make("p", { class: "problem" }, word("no such case", { id }))]);
  const at = m.found.indexOf(row), { get } = m.columns[0], metric = metricOf(m);
  const go = (to) => to === undefined ? null : () => { location.hash = `#${key}/case/${encodeURIComponent(to.id)}${matrixQuery(m)}`; };
  const marks = standings(m.each(row, metric.name), metric.better);
  const sides = m.columns.map((column, c) => {
    const i = row.at[c], status = column.get.status(i), reason = column.get.reason?.(i);
    return make("section", { class: `side ${marks[c] ?? ""}` }, make("h3", { class: "text", dir: "auto" }, visible([column.label, column.about, column.started].filter(Boolean).join(" · "))),
      status === "ok" ? "" : make("p", { class: "bad text", dir: "auto" }, word(`status ${status}`), reason ? `: ${because(reason).slice(0, 500)}` : ""),
      block(column.get.answer?.(i)), make("p", { class: "scores" }, ...scores(m, row, c, marks), make("a", { href: `#${column.key}/case/${encodeURIComponent(id)}`, class: "more" }, word("trace link"))));
  });
  openDialog([make("p", { class: "facts" }, make("code", {}, id)), make("h2", { id: "case-title", class: "text", dir: "auto" }, visible(get.question?.(row.at[0]) || id).slice(0, 2000)),
    ...(get.reference?.(row.at[0]) ? part(word("reference"), block(get.reference(row.at[0]))) : []), ...sides],
  at < 0 ? null : go(m.found[at - 1]), at < 0 ? null : go(m.found[at + 1]), "rows", () => { location.hash = `#${key}/rows${matrixQuery(m)}`; });
}
