// What supports an answer: facts, claims, nuggets and the pages that it names.
const FEW = 8;
const SOURCES = ["reference", "answer", "passage", "page"];

/** The answer with the facts marked that no context supports, and the sentences with a claim that no passage makes; places count whole characters. */
function marked(answer, facts, claims, invented) {
  const characters = Array.from(answer ?? "");
  if (!answer || (!facts?.length && !invented.length) || characters.length > LONG) return undefined;
  const between = (from, to) => characters.slice(from, to).join("");
  const lost = (facts ?? []).filter(({ text, start, end }) => start !== null && between(start, end) === text).sort((a, b) => a.start - b.start);
  const whole = make("span", {});
  let at = 0;
  for (const { start, end, title } of [...places(answer, claims, invented), { start: characters.length, end: characters.length }]) {
    whole.append(...withFacts(at, start, lost, between));
    if (end > start) whole.append(make("span", { class: "invented", title }, ...withFacts(start, end, lost, between)));
    at = end;
  }
  return whole;
}
/** A piece of the answer, with the facts marked that stand in it. */
function withFacts(from, to, facts, between) {
  const nodes = [];
  for (const { kind, start, end } of facts) {
    const first = Math.max(start, from), last = Math.min(end, to);
    if (first >= last) continue;
    nodes.push(visible(between(from, first)), make("mark", { class: "lost", title: word("unsupported", { kind: word(`fact ${kind}`) }) }, visible(between(first, last))));
    from = last;
  }
  return [...nodes, visible(between(from, to))];
}
/** Where the sentences of the invented claims stand in the answer, in whole characters and in their order. */
function places(answer, claims, invented) {
  const found = [];
  let last = { sentence: null, at: 0, end: 0 };
  for (const one of claims.filter(({ of, sentence }) => of === "answer" && sentence)) {
    if (one.sentence !== last.sentence) {
      const later = standing(answer, one.sentence, last.end), at = later < 0 ? standing(answer, one.sentence, 0) : later;
      if (at < 0) continue;
      last = { sentence: one.sentence, at, end: at + one.sentence.length };
    }
    if (!invented.includes(one)) continue;
    const start = Array.from(answer.slice(0, last.at)).length, end = start + Array.from(one.sentence).length;
    const same = found.find((other) => other.start === start);
    if (same) same.title += `; ${visible(one.claim)}`;
    else if (found.every((other) => end <= other.start || other.end <= start)) found.push({ start, end, title: `${word("invented")}: ${visible(one.claim)}` });
  }
  return found.sort((a, b) => a.start - b.start);
}
/** Where a sentence stands from there on, between spaces: «2.» is no part of «12.»; -1 where it does not. */
function standing(text, sentence, from) {
  const free = (at) => !text.charAt(at).trim();
  let at = text.indexOf(sentence, from);
  while (at >= 0 && !(free(at - 1) && free(at + sentence.length))) at = text.indexOf(sentence, at + 1);
  return at;
}
/** What the marks of sentences mean, for those who cannot point at them. */
function legend(invented) {
  return invented.some((one) => one.sentence) ? [make("p", { class: "soft" }, make("span", { class: "invented" }, word("invented")))] : [];
}
function unsupported(facts) {
  if (!facts?.length) return [];
  const items = facts.map(({ kind, text }) => make("li", {}, make("mark", { class: "lost", dir: "auto" }, visible(text ?? "—")), make("small", {}, word(`fact ${kind}`))));
  return [make("p", { class: "soft" }, word("unsupported facts")), make("ul", { class: "lost" }, ...items)];
}

/** The claims of the answer that no passage makes; none where claims were not held against passages. */
function madeUp(claims, faithfulness) {
  if (faithfulness == null) return [];
  return claims.filter((one) => one.of === "answer" && one.supported_by && !one.supported_by.some((name) => name.startsWith("passage_")));
}
/** What supports a claim: «reference, passage 2, 10». */
function supports(by) {
  if (!by?.length) return word(by ? "nothing supports" : "no verdict");
  const numbers = (kind) => by.filter((name) => name.startsWith(kind)).map((name) => Number(name.split("_")[1])).sort((a, b) => a - b);
  return SOURCES.filter((kind) => by.some((name) => name.startsWith(kind))).map((kind) => word(`source ${kind}`, { n: numbers(kind).join(", ") })).join(", ");
}
function checked(sign, text, told, missing) {
  return make("li", { class: missing ? "missed" : null }, make("b", {}, sign), make("span", { class: "text", dir: "auto" }, visible(text)), make("small", {}, told));
}
/** A list under its title; a long one opens on demand, and says before how much in it is missing. */
function titled(title, items) {
  if (!items.length) return [];
  const list = make("ul", { class: "checked" }, ...items);
  if (items.length <= FEW) return part(title, list);
  const missing = items.filter((one) => one.className === "missed").length;
  return [make("details", { class: "checked" }, make("summary", {}, title, missing ? make("b", { class: "bad" }, ` ✗ ${missing}`) : ""), list)];
}

function claimed(claims, side, invented) {
  const items = claims.filter((one) => one.of === side)
    .map((one) => {
      const by = one.supported_by, elsewhere = by?.length && invented.includes(one) ? ` · ${word("no passage")}` : "";
      return checked(by?.length ? "✓" : by ? "✗" : "?", one.claim, supports(by) + elsewhere, invented.includes(one));
    });
  return titled(word(`claims ${side}`, { n: items.length }), items);
}
function wanted(nuggets) {
  const items = (nuggets ?? []).map(({ nugget, vital, support }) => {
    const had = support === null ? "unknown" : support === 1 ? "full" : support ? "partial" : "none";
    return checked({ full: "✓", partial: "½", none: "✗", unknown: "?" }[had], nugget, `${word(vital ? "vital" : "okay")} · ${word(`had ${had}`)}`, vital && had === "none");
  });
  return titled(word("nuggets"), items);
}
function cited(pages) {
  const items = (pages ?? []).map(({ page, in_corpus, retrieved, supports }, i) => {
    const told = in_corpus === false ? "page missing" : supports === null ? "page unknown" : supports ? "page supports" : "page none";
    return checked(`${i + 1}`, page, `${word(told)}${retrieved === false ? ` · ${word("page in answer")}` : ""}`, in_corpus === false || supports === false);
  });
  return titled(word("citations"), items);
}
/** The context with its passages numbered, as claims name them; blank ones have no number. */
function numbered(context, starts) {
  const characters = Array.from(context ?? "");
  if (!(starts?.length > 1) || characters.length > LONG) return undefined;
  const whole = make("span", {});
  let n = 0;
  starts.forEach((start, i) => {
    const passage = characters.slice(start, starts[i + 1]).join("");
    if (passage.trim()) whole.append(make("small", {}, word("source passage", { n: ++n })), "\n");
    whole.append(visible(passage));
  });
  return whole;
}
