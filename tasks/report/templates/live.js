// A page that a server has made asks whether something has changed since, and is made anew where its reader is.
const EVERY_MS = 4000;
const PLACE = "yarus-place";
const news = make("div", { class: "news", role: "status", hidden: true });
let passed = root.dataset.now;

function reload() {
  keep(PLACE, { at: location.href, y: scrollY });
  location.reload();
}

/** Something to remember until the tab is closed; where the browser keeps nothing, nothing is remembered. */
function keep(name, value) {
  try { sessionStorage.setItem(name, JSON.stringify(value)); } catch { /* kept for this page only */ }
}
function kept(name) {
  try { return JSON.parse(sessionStorage.getItem(name)); } catch { return null; }
}

async function look() {
  if (document.hidden) return;
  let reply;
  try { reply = await fetch("/now", { cache: "no-store" }); } catch { return tell("gone"); }
  if (!reply.ok) return tell("gone");
  const now = await reply.text();
  if (now === passed) { if (news.dataset.told === "gone") tell(null); return; }
  if (!("stays" in root.dataset)) return reload();
  tell("changed", now);
}

function tell(what, now) {
  if ((news.dataset.told ?? "") === (what ?? "")) return;
  news.hidden = !what;
  news.dataset.told = what ?? "";
  if (!what) return;
  const again = make("button", { type: "button", class: "do", onclick: reload }, word("make anew"));
  const later = make("button", { type: "button", onclick: () => { passed = now; tell(null); } }, word("not now"));
  news.replaceChildren(make("span", {}, word(`page ${what}`)), ...(what === "changed" ? [again, later] : []));
}

/** Where the reader was before the page was made anew, as soon as it is long enough. */
function back() {
  const place = kept(PLACE);
  keep(PLACE, null);
  if (place?.at !== location.href) return;
  const until = performance.now() + 3000;
  const step = () => {
    const high = document.documentElement.scrollHeight >= place.y + innerHeight;
    if (high || performance.now() > until) scrollTo(0, place.y); else setTimeout(step, 50);
  };
  step();
}

if (passed !== undefined) {
  document.body.append(news);
  setInterval(look, EVERY_MS);
  document.addEventListener("visibilitychange", look);
  addEventListener("load", back);
}
