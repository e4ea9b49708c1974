// How an answer came about: what was found, asked, replied and judged, each with what is recorded of its time and cost.
/** Facts of a step in a line; those that are not recorded are left out. */
function factsOf(...facts) {
  const known = facts.filter(Boolean);
  return known.length ? make("p", { class: "facts" }, ...known.map((fact) => make("span", {}, fact))) : null;
}
function time(ms) { return ms == null ? null : ms < 1000 ? word("ms", { n: ms < 10 ? ms.toFixed(1) : Math.round(ms) }) : word("s", { n: (ms / 1000).toFixed(1) }); }
function tokens2(from, to) { return from || to ? word("tokens", { from: from ?? "—", to: to ?? "—" }) : null; }
function usd(cost) { return cost ?  `$${cost < 0.01 ? cost.toFixed(5) : cost.toFixed(3)}` : null; }
function spentOn(call) {
  return [call.model, tokens2(call.tokens_in, call.tokens_out), call.stored ? word("bought earlier") : usd(call.cost_usd), time(call.latency_ms), call.finish_reason === "length" ? word("cut off") : null];
}
function step(name, facts, ...content) {
  const shown = content.flat().filter(Boolean);
  return make("li", { class: `step ${name}` }, make("h3", {}, word(`step ${name}`)), facts ?? "", ...shown);
}

function found(details, get, i, about) {
  const items = ranking(details.relevant?.(i), details.retrieved?.(i), details.distances?.(i)).slice(1);
  if (!items.length) return null;
  const ms = get.retrieval_latency_ms?.(i) ?? (get.answer ? null : get.latency_ms?.(i));
  return step("found", factsOf(about.made.retriever, about.made.reranker, time(ms) ?? (get.retrieval_latency_ms ? word("not timed") : null)), items);
}

function asked(details, get, i, about, calls) {
  const context = details.context?.(i);
  if (!details.context && !calls.length && !details.asked?.(i) && !details.history?.(i)?.length) return null;
  const first = calls[0], own = Boolean(first);
  const how = own ? word("asked model", { prompt: about.made.generator_prompt?.split("|")[0] ?? first.prompt }) : get.answer && about.made.sut && about.made.sut !== "local" ? word("asked system", { sut: about.made.sut }) : null;
  return step("asked", factsOf(details.truncated?.(i) ? word("truncated") : null, context ? word("characters", { n: context.length }) : null),
    how ? make("p", { class: "soft text" }, visible(how)) : null,
    details.asked?.(i) ? [make("p", { class: "soft" }, word("asked instead")), block(details.asked(i))] : null,
    ...told(details.history?.(i)),
    details.context ? [make("p", { class: "soft" }, word("context")), block(context, numbered(context, details.passage_starts?.(i)))] : null);
}

function replied(details, get, i, calls) {
  if (!get.answer) return null;
  const ms = get.latency_ms?.(i), searched = get.retrieval_latency_ms?.(i), first = get.first_token_ms?.(i);
  const facts = calls.length ? calls.map((call) => factsOf(...spentOn(call))) : [factsOf(tokens2(details.sut_tokens_in?.(i), details.sut_tokens_out?.(i)), usd(get.sut_cost_usd?.(i)))];
  const whole = calls.filter((call) => call.reply);
  return step("replied", null, ...facts,
    factsOf(details.path?.(i) ? word("path", { path: visible(details.path(i)) }) : null, time(first) ? word("first token", { time: time(first) }) : null, time(ms) ? word(searched || searched === 0 ? "answered with search" : "answered in", { time: time(ms) }) : word("not timed")),
    whole.length ? make("details", {}, make("summary", {}, word("whole reply")), ...whole.map((call) => make("pre", { class: "text" }, visible(call.reply)))) : null);
}

/** Each reply of a judge with its score, what it cost, and its words as received. */
function judging(details, get, i, calls) {
  const raw = details.judge_raw?.(i) ?? [], reasons = details.judge_reasons?.(i) ?? [];
  if (!raw.length && !reasons.length) return null;
  const said = reasons.filter((reason) => !reason.startsWith("exam:")).map((reason) => make("p", { class: "verdict text", dir: "auto" }, visible(reason)));
  const items = raw.map((one, n) => {
    const score = one.status === "ok" && !one.repeat ? get[one.metric]?.(i) : null;
    return make("li", {}, make("b", {}, visible(one.metric)), one.repeat ? ` ${word("repeat", { n: one.repeat + 1 })}` : "", ` ${score == null ? "" : number(score)} `,
      one.status === "ok" ? "" : make("span", { class: "bad" }, word(`status ${one.status}`)), factsOf(...(calls[n] ? spentOn(calls[n]) : [])) ?? "");
  });
  const replies = raw.map((one) => [make("p", { class: "soft" }, `${one.metric}${one.repeat ? ", " + word("repeat", { n: one.repeat + 1 }) : ""} · ${word("status " + one.status)}`), make("pre", { class: "text" }, visible(one.reply ?? "—"))]).flat();
  return step("judged", null, ...said, items.length ? make("ul", { class: "calls" }, ...items) : null, replies.length ? make("details", {}, make("summary", {}, word("raw")), ...replies) : null);
}

function trace(details, get, i, about) {
  const calls = details.calls?.(i) ?? [], own = calls.filter((call) => call.role === "generator"), judges = calls.filter((call) => call.role !== "generator");
  const steps = [found(details, get, i, about), asked(details, get, i, about, own), replied(details, get, i, own), judging(details, get, i, judges)].filter(Boolean);
  if (!steps.length) return [];
  const missing = !details.calls && (details.judge_raw || details.tokens_in) ? make("p", { class: "soft" }, word("calls unknown")) : null;
  return [make("h3", { class: "over" }, word("trace")), factsOf(tokens2(details.tokens_in?.(i), details.tokens_out?.(i)), usd(get.cost_usd?.(i) ?? details.cost_usd?.(i))),
    about.made.answers_of ? make("p", { class: "soft text" }, word("answers of", { id: about.made.answers_of })) : null, missing, make("ol", { class: "trace" }, ...steps)];
}
