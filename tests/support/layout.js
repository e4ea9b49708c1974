// What a reader cannot read: texts that lie over each other, and texts that something cuts off.
() => {
  const SLACK = 1.5; // pixels that glyphs' boxes may share, or be cut by, and nobody sees it
  const SPACE = 6; // of a space that hangs over the end of its line
  const said = (one) => `${one.text.replace(/\s+/g, " ").slice(0, 40)} <${one.element.tagName.toLowerCase()} ${one.element.getAttribute("class") ?? ""}>`;
  const style = new Map();
  const styled = (element) => { if (!style.has(element)) style.set(element, getComputedStyle(element)); return style.get(element); };

  /** An ellipsis says that there is more; what is scrolled vertically is scrolled. */
  const ellipsis = (element) => styled(element).textOverflow === "ellipsis" || styled(element).webkitLineClamp !== "none";

  const modal = document.querySelector("dialog[open]");
  const texts = [];
  const silent = "script, style, noscript, option, .hidden, .skip, [hidden]";
  // What is not displayed is passed over whole: most of a page is, and to ask each text is slow.
  const walker = document.createTreeWalker(modal ?? document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data.trim() ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT;
    return node.matches(silent) || styled(node).display === "none" ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
  });
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    const element = node.parentElement;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) texts.push({ node, text, element, box, inside: [] });
  }

  /** What cuts off what stands in an element, from the inside outwards. */
  const edges = new Map();
  const cutting = (element) => {
    if (!element || element === document.documentElement) return [];
    if (!edges.has(element)) {
      const { overflowX, overflowY, position } = styled(element);
      const drawing = element.tagName === "svg";
      const above = position === "fixed" && !drawing ? [] : cutting(element.parentElement);
      const cuts = !drawing && (overflowX !== "visible" || overflowY !== "visible");
      const own = () => ({ edge: element.getBoundingClientRect(), scrolls: ["auto", "scroll"].includes(overflowY), ellipsis: ellipsis(element) });
      edges.set(element, cuts ? [own(), ...above] : above);
    }
    return edges.get(element);
  };

  const faults = new Set();
  const width = document.documentElement.clientWidth;
  for (const one of texts) {
    for (const { edge, scrolls, ellipsis } of cutting(one.element)) {
      if (ellipsis) { one.cut = edge; break; }
      if (one.box.right > edge.right + SPACE || one.box.left < edge.left - SLACK) { faults.add(`cut at the side: ${said(one)}`); break; }
      if (!scrolls && (one.box.bottom > edge.bottom + SLACK || one.box.top < edge.top - SLACK)) { faults.add(`cut above or below: ${said(one)}`); break; }
      if (scrolls) one.inside.push(edge);
    }
    if (one.box.right > width + SPACE || one.box.left < -SLACK) faults.add(`beyond the window: ${said(one)}`);
  }

  // What is sticky lies over what is scrolled under it, and is meant to.
  const layer = (element) => element.closest("header.top, .bar-top, .pinned");
  const boxes = texts.filter((one) => !layer(one.element)).map((one) => {
    const { left, right } = one.box;
    let { top, bottom } = one.box;
    for (const edge of [one.cut, ...one.inside]) if (edge) { top = Math.max(top, edge.top); bottom = Math.min(bottom, edge.bottom); }
    return { ...one, left, right: one.cut ? Math.min(right, one.cut.right) : right, top, bottom };
  }).filter((one) => one.bottom - one.top > SLACK).sort((a, b) => a.top - b.top);
  let open = [];
  for (const one of boxes) {
    open = open.filter((other) => other.bottom > one.top);
    for (const other of open) {
      if (one.node === other.node) continue; // an ellipsis has a box of its own
      // Boxes of lines are taller than what stands in them: a fifth may be shared above and below.
      const share = 0.2 * Math.min(one.bottom - one.top, other.bottom - other.top);
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > SLACK && high > Math.max(SLACK, share)) faults.add(`one over the other: ${said(other)} | ${said(one)}`);
    }
    open.push(one);
  }
  return [...faults];
}
