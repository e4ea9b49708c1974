"use strict";
/* The page for labels. Everything that is shown of a case is put in as text, never as markup. */
(() => {
  const { words, page } = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main"), top = document.getElementById("top");
  const foot = document.getElementById("foot"), problem = document.getElementById("problem");
  const asked = new URLSearchParams(location.search);
  const KEYS = { Digit1: 1, Numpad1: 1, Digit2: 0.5, Numpad2: 0.5, Digit3: 0, Numpad3: 0 };
  const state = { evaluation: asked.get("evaluation"), metric: asked.get("metric"), annotator: remembered("annotator") };
  let busy = false, again = null;

  function remembered(name) {
    try { return localStorage.getItem(`yarus-${name}`) || ""; } catch { return ""; }
  }

  function remember(name, value) {
    try { localStorage.setItem(`yarus-${name}`, value); } catch { /* then it is asked for again */ }
  }

  function made(tag, more = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(more)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function said(key, values = {}) {
    return words[key].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
  }

  const share = (value) => (value === null ? "—" : value.toFixed(3));

  const PATIENCE_MS = 20_000;

  async function send(name, body) {
    const headers = { "X-Yarus-Page": page };
    if (body) headers["Content-Type"] = "application/json";
    let reply;
    try {
      reply = await fetch(name, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(PATIENCE_MS) });
    } catch {
      throw Object.assign(new Error(words["gone"]), { retry: true });
    }
    if (reply.status === 404) throw new Error(words["other address"]);
    const found = await reply.json().catch(() => ({ error: words["gone"] }));
    if (!reply.ok) throw Object.assign(new Error(found.error), { retry: reply.status >= 500 });
    return found;
  }

  /* One thing at a time; what did not work is said and stays on the page, and can be tried again. */
  async function attempt(work) {
    if (busy) return;
    busy = true;
    main.setAttribute("aria-busy", "true");
    try {
      await work();
      problem.hidden = true;
      again = null;
    } catch (error) {
      again = error.retry ? work : null;
      problem.replaceChildren(error.message, again ? made("button", { type: "button", onclick: retry }, words["retry"]) : "");
      problem.hidden = false;
    } finally {
      busy = false;
      main.removeAttribute("aria-busy");
    }
  }

  function retry() {
    if (again) attempt(again);
  }

  function heading(text, ...more) {
    top.replaceChildren(made("h1", {}, text), ...more);
  }

  function askName() {
    heading(words["title"]);
    foot.replaceChildren();
    state.case = null;
    const field = made("input", { id: "name", maxlength: 60, required: true, autocomplete: "nickname", value: state.annotator });
    const form = made("form", {
      onsubmit: (event) => {
        event.preventDefault();
        state.annotator = field.value.trim();
        if (!state.annotator) return;
        remember("annotator", state.annotator);
        begin();
      },
    }, made("label", { for: "name" }, words["your name"]), field, made("button", { class: "main" }, words["begin"]));
    main.replaceChildren(form);
    field.focus();
  }

  async function choose() {
    const found = await send("evaluations");
    heading(words["title"], who());
    foot.replaceChildren();
    const rows = found.map((row) => made("li", {},
      made("b", {}, row.source), ` · ${row.evaluation} · ${row.started_at.replace("T", " ").slice(0, 16)}`,
      made("div", { class: "choices" }, ...row.metrics.map((metric) => made("a", {
        href: `?${new URLSearchParams({ evaluation: row.evaluation, metric })}`,
      }, metric.replace(/^avg_/, ""))))));
    main.replaceChildren(rows.length ? made("ul", { class: "list" }, ...rows) : made("p", {}, words["nothing"]));
  }

  function who() {
    return made("button", { type: "button", class: "quiet", onclick: askName, title: words["other name"] }, state.annotator);
  }

  async function next() {
    const found = await send(`next?${new URLSearchParams(state)}`);
    Object.assign(state, { evaluation: found.evaluation, metric: found.metric });
    state.asks = found.asks;
    show(found.asked, found.progress);
  }

  function show(found, progress, last = null, note = "") {
    state.case = found;
    const line = made("p", { class: "soft" }, `${state.metric.replace(/^avg_/, "")} · ${state.evaluation}`);
    heading(state.asks, line, who(), made("a", { class: "quiet", href: location.pathname }, words["others"]));
    tell(progress, last);
    if (!found) {
      main.replaceChildren(made("p", { class: "done" }, words["done"]));
      foot.prepend(made("div", { class: "keys" }, key("undo", "⌫", undo)));
      main.focus();
      return;
    }
    const part = (name, text, kind = "") => (text ? made("section", { class: kind },
      made("h2", {}, words[name]), made("div", { class: "text", tabindex: kind === "passages" ? 0 : null }, text)) : null);
    const field = made("textarea", { id: "note", maxlength: 2000, rows: 2, placeholder: words["note"], "aria-label": words["note"] });
    field.value = note || found.note;
    const parts = [part("question", found.question, "asked"), part("answer", found.answer, "answer"),
      part("reference", found.reference), part("context", found.context, "passages")];
    main.replaceChildren(...parts.filter(Boolean), field);
    foot.prepend(made("div", { class: "keys" },
      key("yes", "1", () => save(1), "yes"), key("partly", "2", () => save(0.5), "partly"), key("no", "3", () => save(0), "no"),
      key("skip", "0", () => save(null)), key("undo", "⌫", undo), key("to note", "N", () => field.focus())));
    main.focus();
    scrollTo(0, 0);
  }

  function key(name, letter, work, kind = "") {
    return made("button", { type: "button", class: kind, onclick: work }, made("kbd", {}, letter), words[name]);
  }

  function tell(progress, last) {
    const known = progress.estimate, lines = [];
    if (last) lines.push(made("p", { class: "last", id: "last" }, said("last", last)));
    lines.push(made("p", { id: "count" }, said("count", progress),
      made("progress", { max: progress.cases, value: progress.own + progress.passed_over, "aria-label": words["title"] })));
    if (known.value !== null) {
      const figures = { value: share(known.value), low: share(known.ci_low), high: share(known.ci_high),
        judge: share(known.judge_value), width: share(known.width), after: share(known.width_after_ten) };
      lines.push(made("p", { id: "estimate" }, said("estimate", figures)));
      lines.push(made("p", { id: "width", class: known.enough ? "enough" : "soft" }, said(known.enough ? "enough" : "width", figures)));
    }
    foot.replaceChildren(...lines);
  }

  function verdict(value) {
    return value === null ? words["skip"] : words[value === 1 ? "yes" : value === 0 ? "no" : "partly"];
  }

  function save(value) {
    const found = state.case, field = document.getElementById("note");
    if (!found || busy) return;
    const note = field.value;
    attempt(async () => {
      const kept = await send("save", { ...whom(), case_id: found.case_id, value, note });
      const last = { said: verdict(value), score: kept.score.toFixed(2) };
      show(kept.asked, kept.progress, value === null ? null : last);
    });
  }

  function undo() {
    attempt(async () => {
      const found = await send("undo", whom());
      if (found.asked) show(found.asked, found.progress, null, found.asked.note);
    });
  }

  function whom() {
    return { evaluation: state.evaluation, metric: state.metric, annotator: state.annotator };
  }

  function begin() {
    if (!state.annotator) askName();
    else attempt(state.evaluation ? next : choose).then(() => {
      if (!problem.hidden && !again && !main.children.length) askName();  // a name that is none, kept from before
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const typing = /^(TEXTAREA|INPUT)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) { event.target.blur(); main.focus(); return; }
    if (typing || !document.querySelector(".keys") || !state.case && event.code !== "Backspace") return;
    if (event.code in KEYS) save(KEYS[event.code]);
    else if (event.code === "Digit0" || event.code === "Numpad0") save(null);
    else if (event.code === "Backspace") undo();
    else if (event.code === "KeyN") document.getElementById("note").focus();
    else return;
    event.preventDefault();
  });

  if (!state.metric) delete state.metric;
  begin();
})();
