// What supports an answer: facts, claims, nuggets and the pages that it names.

/** The answer with the facts marked that no context supports, and the sentences with a claim that no passage makes; places count whole characters. */
function marked(answer, facts, invented) {
  const characters = Array.from(answer ?? "");
  if ((!facts?.length && !invented.length) || characters.length > LONG) return undefined;
  const between = (from, to) => characters.slice(from, to).join("");
  const lost = (facts ?? []).filter(({ text, start, end }) => start !== null && between(start, end) === text).sort((a, b) => a.start - b.start);
  const whole = make("span", {});
  let at = 0;
  for (const { start, end, title } of [...places(answer, invented), { start: characters.length, end: characters.length }]) {
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
/** Where the sentences of these claims stand in the answer, in whole characters and in their order. */
function places(answer, claims) {
  const found = [];
  for (const { sentence, claim } of claims) {
    const at = sentence ? answer.indexOf(sentence) : -1;
    if (at < 0) continue;
    const start = Array.from(answer.slice(0, at)).length, end = start + Array.from(sentence).length;
    const same = found.find((one) => one.start === start);
    if (same) same.title += `; ${visible(claim)}`;
    else if (found.every((one) => end <= one.start || one.end <= start)) found.push({ start, end, title: `${word("invented")}: ${visible(claim)}` });
  }
  return found.sort((a, b) => a.start - b.start);
}
function unsupported(facts) {
  if (!facts?.length) return [];
  const items = facts.map(({ kind, text }) => make("li", {}, make("mark", { class: "lost", dir: "auto" }, visible(text ?? "—")), make("small", {}, word(`fact ${kind}`))));
  return [make("p", { class: "soft" }, word("unsupported facts")), make("ul", { class: "lost" }, ...items)];
}

/** The claims of the answer that no passage makes; none where claims were not held against passages. */
function madeUp(claims, faithfulness) {
  if (faithfulness === null || faithfulness === undefined) return [];
  return claims.filter((one) => one.of === "answer" && one.supported_by && !one.supported_by.some((name) => name.startsWith("passage_")));
}
function sourceName(name) {
  const [kind, n] = name.split("_");
  return n ? word(`source ${kind}`, { n }) : word(`source ${name}`);
}
function supports(by) { return by === null ? word("no verdict") : by.length ? by.map(sourceName).join(", ") : word("nothing supports"); }
function checked(sign, text, told, missing) {
  return make("li", { class: missing ? "missed" : null }, make("b", {}, sign), make("span", { class: "text", dir: "auto" }, visible(text)), make("small", {}, told));
}

function claimed(claims, side, invented) {
  const items = claims.filter((one) => one.of === side)
    .map((one) => checked(one.supported_by?.length ? "✓" : one.supported_by ? "✗" : "?", one.claim, supports(one.supported_by), invented.includes(one)));
  return items.length ? part(word(`claims ${side}`, { n: items.length }), make("ul", { class: "checked" }, ...items)) : [];
}
function wanted(nuggets) {
  const items = (nuggets ?? []).map(({ nugget, vital, support }) => {
    const had = support === null ? "unknown" : support === 1 ? "full" : support ? "partial" : "none";
    return checked({ full: "✓", partial: "½", none: "✗", unknown: "?" }[had], nugget, `${word(vital ? "vital" : "okay")} · ${word(`had ${had}`)}`, vital && had === "none");
  });
  return items.length ? part(word("nuggets"), make("ul", { class: "checked" }, ...items)) : [];
}
function cited(pages) {
  const items = (pages ?? []).map(({ page, in_corpus, retrieved, supports }, i) => {
    const told = !in_corpus ? "page missing" : supports === null ? "page unknown" : supports ? "page supports" : "page none";
    return checked(`${i + 1}`, page, `${word(told)}${retrieved ? "" : ` · ${word("page in answer")}`}`, !in_corpus || supports === false);
  });
  return items.length ? part(word("citations"), make("ul", { class: "checked" }, ...items)) : [];
}
