// One opened case, and what changed in a case between two evaluations.
const dialog = document.getElementById("case");
const LONG = 20000;

/** A text as text; of a very long one the beginning, until the reader asks for all. */
function block(text, content) {
  if (text == null || text === "") return make("p", { class: "soft" }, word("empty"));
  const whole = visible(text);
  const place = make("div", { class: "block text", dir: "auto", tabindex: "0" }, content ?? whole.slice(0, LONG));
  if (content || whole.length <= LONG) return place;
  const more = make("button", { type: "button", onclick: () => { place.textContent = whole; more.remove(); } }, word("show all", { n: whole.length }));
  return make("div", {}, place, more);
}
function part(title, ...content) { return [make("h3", {}, title), ...content]; }

function ranking(relevant, retrieved, distances) {
  if (!retrieved && !relevant?.length) return [];
  const wanted = new Set(relevant ?? []), have = new Set(retrieved ?? []);
  const items = (retrieved ?? []).map((id, i) => make("li", { class: wanted.has(id) ? "hit" : null }, visible(id),
    wanted.has(id) ? ` ✓ ${word("relevant")}` : "", make("small", {}, distances?.[i] != null ? `  ${number(distances[i])}` : "")));
  const missed = [...wanted].filter((id) => !have.has(id));
  return part(word("ranking"), items.length ? make("ol", { class: "ranking" }, ...items) : make("p", { class: "soft" }, word("nothing retrieved")),
    missed.length ? make("p", { class: "missing" }, `${word("missed")}: ${missed.map(visible).join(", ")}`) : null);
}

/** The answers that the judge was examined with here, each with what every prompt gave it and what it deserves. */
function examined(items, scores) {
  if (!items?.length) return [];
  const given = (item) => (scores ?? []).filter((one) => one.kind === item.kind)
    .map((one) => `${one.prompt} ${one.score === null ? "—" : number(one.score)} ${one.damaged ? "↓" : "↑"}`).join(" · ");
  const answers = items.map((item) => [make("p", { class: "soft" }, make("code", {}, item.kind), ` ${given(item)}`), block(item.answer)]).flat();
  return [make("details", {}, make("summary", {}, word("exam", { n: items.length })), ...answers)];
}

/** What the system was told had been said before the question. */
function told(messages) {
  if (!messages?.length) return [];
  const said = messages.map((one) => [make("p", { class: "soft" }, word(one.role === "user" ? "said by user" : "said by assistant")), block(one.content)]).flat();
  return [make("details", {}, make("summary", {}, word("history", { n: messages.length })), ...said)];
}

const SHOWN = new Set(["calls", "asked", "truncated", "path", "tokens_in", "tokens_out", "sut_tokens_in", "sut_tokens_out", "history", "unsupported_facts", "claims", "nuggets", "citations", "passage_starts", "exam", "exam_scores", "context", "relevant", "retrieved", "distances", "judge_raw", "judge_reasons", "answers", "grades"]);
function rest(details, i) {
  const rows = Object.entries(details).filter(([name]) => !SHOWN.has(name)).map(([name, get]) => [name, get(i)])
    .filter(([, value]) => value != null && value !== "")
    .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, typeof value === "boolean" ? word(value ? "yes" : "no") : visible(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 500))));
  return rows.length ? [make("details", {}, make("summary", {}, word("more")), make("dl", { class: "numbers" }, ...rows))] : [];
}

function values(get, names, i) {
  const rows = names.filter((name) => get[name](i) != null)
    .map((name) => make("div", {}, make("dt", {}, name), make("dd", {}, number(get[name](i)))));
  return rows.length ? part(word("values"), make("dl", { class: "numbers" }, ...rows)) : [];
}

async function showCase(key, id, filters) {
  const list = await openList(key);
  const details = reader(await unpack(`details-${key}`));
  const i = Array.from({ length: list.n }, (_, at) => at).find((at) => list.get.case_id(at) === id);
  if (i === undefined) return openDialog([make("p", { class: "problem" }, word("no such case", { id }))]);
  if (!list.found.length) { list.filter = filters; list.found = matching(list); }
  const at = list.found.indexOf(i), { get } = list;
  const go = (to) => to === undefined ? null : () => { location.hash = address(list, to); };
  const failure = get.failure?.(i), status = get.status(i);
  const answers = details.answers?.(i), lost = details.unsupported_facts?.(i), claims = details.claims?.(i) ?? [];
  const invented = madeUp(claims, get.claim_faithfulness?.(i));
  const content = [
    make("p", { class: "facts" }, make("code", {}, id), make("span", { class: status === "ok" ? null : "bad" }, word(`status ${status}`)), failure ? make("span", { class: "bad" }, word(`failure ${failure}`)) : null),
    make("h2", { id: "case-title", class: "text", dir: "auto" }, visible(list.title(i)).slice(0, 2000)),
    visible(list.title(i)).length > 2000 ? block(list.title(i)) : null,
    get.reason?.(i) ? make("p", { class: "problem text", dir: "auto" }, because(get.reason(i)).slice(0, LONG)) : null,
    ...(get.answer ? part(word("answer"), block(get.answer(i), marked(get.answer(i), lost, claims, invented)), ...legend(invented), ...unsupported(lost)) : []),
    ...claimed(claims, "answer", invented),
    ...cited(details.citations?.(i)),
    ...(get.reference ? part(word("reference"), block(get.reference(i))) : []),
    ...claimed(claims, "reference", []),
    ...wanted(details.nuggets?.(i)),
    ...(answers?.length > 1 ? part(word("answers"), ...answers.map((answer) => block(answer))) : []),
    ...trace(details, get, i, list.about),
    ...examined(details.exam?.(i), details.exam_scores?.(i)),
    ...values(get, list.about.numbers, i),
    ...rest(details, i)];
  return openDialog(content, at < 0 ? null : go(list.found[at - 1]), at < 0 ? null : go(list.found[at + 1]), "cases", () => { location.hash = `#${key}/cases${query(list)}`; });
}

function openDialog(content, earlier, later, origin, close) {
  dialog.origin = origin;
  dialog.leave = close ?? (() => { location.hash = "#" + route().page; });
  const steps = make("span", {}, make("button", { type: "button", disabled: !earlier, onclick: earlier ?? (() => {}) }, word("earlier")), " ",
    make("button", { type: "button", disabled: !later, onclick: later ?? (() => {}) }, word("later")));
  dialog.replaceChildren(make("div", { class: "bar-top" }, steps, make("button", { type: "button", onclick: () => dialog.leave() }, word("close"))),
    make("div", { class: "inside" }, ...content.filter(Boolean)));
  dialog.scrollTop = 0;
  if (!dialog.open) dialog.showModal();
}
dialog?.addEventListener("cancel", (event) => { event.preventDefault(); dialog.leave(); });
dialog?.addEventListener("click", (event) => { if (event.target === dialog) dialog.leave(); });

// Word by word what changed, by the longest common subsequence.
function tokens(text) { return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []; }
function wordDiff(before, after) {
  const a = tokens(before), b = tokens(after);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  const parts = [["same", a.slice(0, start)]];
  if (x.length * y.length > 4e6) parts.push(["del", x], ["ins", y]); // too long for it: as a whole
  else {
    const width = y.length + 1, best = new Uint32Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--) {
      best[i * width + j] = x[i] === y[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
    let i = 0, j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) { parts.push(["same", [x[i]]]); i++; j++; }
      else if (i < x.length && (j === y.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) parts.push(["del", [x[i++]]]);
      else parts.push(["ins", [y[j++]]]);
    }
  }
  parts.push(["same", end ? a.slice(a.length - end) : []]);
  const same = parts.reduce((sum, [kind, words]) => sum + (kind === "same" ? words.filter(isWord).length : 0), 0);
  if (same < 0.3 * Math.max(a.filter(isWord).length, b.filter(isWord).length)) return [["del", before], ["ins", after]].filter(([, text]) => text);
  return grouped(parts);
}
function isWord(token) { return /[\p{L}\p{N}]/u.test(token); }

/** Changes that only spaces and commas keep apart, put together: what was there, then what is there now. */
function grouped(parts) {
  const found = [];
  let gone = [], come = [], between = [];
  const flush = () => {
    if (gone.length) found.push(["del", gone.join("")]);
    if (come.length) found.push(["ins", come.join("")]);
    if (between.length) found.push(["same", between.join("")]);
    gone = []; come = []; between = [];
  };
  for (const [kind, words] of parts) {
    if (!words.length) continue;
    if (kind === "same" && words.some(isWord)) { flush(); found.push(["same", words.join("")]); }
    else if (kind === "same") between.push(...words);
    else {
      if (gone.length + come.length) { gone.push(...between); come.push(...between); }
      else if (between.length) found.push(["same", between.join("")]);
      between = [];
      (kind === "del" ? gone : come).push(...words);
    }
  }
  flush();
  return found;
}
function diffed(before, after) {
  const nodes = wordDiff(visible(before), visible(after)).map(([kind, text]) => kind === "same" ? document.createTextNode(text) : make(kind, {}, text));
  const whole = make("span", {});
  whole.append(...nodes);
  return whole;
}

async function showLists(key) {
  const place = document.querySelector(`.changes[data-key="${CSS.escape(key)}"]`);
  if (!place) return;
  const pack = await unpack(`pair-${key}`);
  const names = Object.keys(pack.lists).filter((name) => pack.lists[name].length);
  place.dataset.list = names.includes(place.dataset.list) ? place.dataset.list : names[0];
  const shared = reader(pack.shared), at = new Map(pack.ids.map((id, i) => [id, i]));
  const count = (name) => Object.values(pack.entries[name]).reduce((sum, one) => sum + one.n, 0);
  const buttons = names.map((name) => make("button", { type: "button", "aria-pressed": String(name === place.dataset.list), onclick: () => { place.dataset.list = name; showLists(key); } }, `${word("list " + name)}: ${count(name)}`));
  const all = pack.lists[place.dataset.list], shown = all.slice(0, place.whole ? undefined : PAGE);
  const entries = pack.entries[place.dataset.list], [a, b] = [reader(pack.a), reader(pack.b)];
  const moved = (id) => entries[id].metric_changes.join(", ") || `${word(`status ${a.status(at.get(id))}`)} → ${word(`status ${b.status(at.get(id))}`)}`;
  const items = shown.map((id) => make("li", {}, make("a", { class: "text", dir: "auto", href: `#${key}/changed/${encodeURIComponent(id)}` },
    visible(shared.question?.(at.get(id)) || shared.text?.(at.get(id)) || id).slice(0, 240)), entries[id].n > 1 ? make("b", {}, ` ×${entries[id].n}`) : "", make("small", { class: "moved-by" }, moved(id))));
  place.replaceChildren(make("div", { class: "lists" }, ...buttons), make("ul", { class: "changed-cases" }, ...items),
    shown.length < all.length ? make("button", { type: "button", onclick: () => { place.whole = true; showLists(key); } }, word("page", { from: 1, to: shown.length, of: all.length })) : "");
}

async function showChanged(key, id) {
  const pack = await unpack(`pair-${key}`);
  const i = pack.ids.indexOf(id);
  if (i < 0) return openDialog([make("p", { class: "problem" }, word("no such case", { id }))]);
  const [a, b, shared] = [reader(pack.a), reader(pack.b), reader(pack.shared)];
  const list = Object.values(pack.lists).find((ids) => ids.includes(id)) ?? [], place = list.indexOf(id);
  const go = (to) => to === undefined ? null : () => { location.hash = `#${key}/changed/${encodeURIComponent(to)}`; };
  const side = (get, title) => make("div", {}, make("h3", {}, title), make("p", { class: get.status(i) === "ok" ? "soft" : "bad" }, word(`status ${get.status(i)}`), get.reason?.(i) ? `: ${because(get.reason(i), pack.reasons).slice(0, 500)}` : ""), get.answer ? block(get.answer(i)) : "");
  const before = a.answer?.(i), after = b.answer?.(i);
  const names = Object.keys(pack.b).filter((name) => !["answer", "status", "reason", "retrieved"].includes(name) && a[name] && (a[name](i) ?? null) !== (b[name](i) ?? null));
  const moved = names.map((name) => make("div", {}, make("dt", {}, name), make("dd", {}, `${number(a[name](i))} → ${number(b[name](i))}`)));
  const rankings = [a, b].map((get) => get.retrieved?.(i));
  return openDialog([
    make("p", { class: "facts" }, make("code", {}, id)),
    make("h2", { id: "case-title", class: "text", dir: "auto" }, visible(shared.question?.(i) || shared.text?.(i) || id).slice(0, 2000)),
    ...(typeof before === "string" && typeof after === "string" ? part(word("diff"), before === after ? make("p", { class: "soft" }, word("same answer")) : block(after, diffed(before, after))) : []),
    make("div", { class: "pairs" }, side(a, word("before")), side(b, word("after"))),
    ...(shared.reference?.(i) ? part(word("reference"), block(shared.reference(i))) : []),
    ...(rankings[0] || rankings[1] ? part(word("ranking"), make("p", { class: "text" }, `${word("before")}: ${visible((rankings[0] ?? []).join(", ") || "—")}\n${word("after")}: ${visible((rankings[1] ?? []).join(", ") || "—")}`)) : []),
    ...(moved.length ? part(word("values"), make("dl", { class: "numbers" }, ...moved)) : []),
    make("p", {}, make("a", { href: `#${key}/case/${encodeURIComponent(id)}` }, word("more")))],
  go(list[place - 1]), go(list[place + 1]), "compare", () => { location.hash = `#${key}/compare`; });
}
