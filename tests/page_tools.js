// What tests ask of an open page: which texts are hard to read, which pictures and controls have no name.
window.tools = (() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

  const remembered = (compute) => {
    const known = new Map();
    return (key) => known.get(key) ?? known.set(key, compute(key)).get(key);
  };

  // Any CSS colour as [red, green, blue] from 0 to 255 and alpha from 0 to 1.
  const rgba = remembered((colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  });

  const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => a * part + (1 - a) * below[i]);

  // A function of an element: the colour behind it, and how much of the element itself shows.
  function backdrop() {
    const find = remembered((element) => {
      const [below, opacity] = element.parentElement ? find(element.parentElement) : [[255, 255, 255], 1];
      const style = getComputedStyle(element);
      return [over(rgba(style.backgroundColor), below), opacity * style.opacity];
    });
    return find;
  }

  // Relative luminance and contrast ratio as WCAG 2.2 defines them.
  function luminance(colour) {
    const [r, g, b] = colour.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  function contrast(element, [below, opacity]) {
    const style = getComputedStyle(element);
    const [r, g, b, a] = rgba(element instanceof SVGElement ? style.fill : style.color);
    const [light, dark] = [luminance(over([r, g, b, a * opacity], below)), luminance(below)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  }

  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const seen = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });

  return {
    luminance: () => luminance(backdrop()(document.body)[0]),

    open: () => document.querySelectorAll("details").forEach((each) => { each.open = true; }),

    // Texts below 4.5 : 1, or 3 : 1 where they are large; a control that is disabled need not be read.
    faint: () => {
      const behind = backdrop();
      return [...document.body.querySelectorAll("*")]
        .filter((each) => hasText(each) && seen(each) && !each.closest("script, style, :disabled"))
        .map((each) => [each, contrast(each, behind(each)), getComputedStyle(each)])
        .filter(([, ratio, { fontSize, fontWeight }]) => {
          const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
          return ratio < (large ? 3 : 4.5);
        })
        .map(([each, ratio]) => `${each.tagName} "${each.textContent.trim().slice(0, 40)}" ${ratio.toFixed(2)}`);
    },

    unnamed: () => [...document.querySelectorAll("img, svg, [role=img]")]
      .filter((each) => !each.closest("[aria-hidden=true]"))
      .filter((each) => !(each.getAttribute("aria-label") || each.getAttribute("alt") || "").trim())
      .map((each) => each.outerHTML.slice(0, 80)),

    // How many pixels the page is wider than its window.
    overflow: () => document.documentElement.scrollWidth - document.documentElement.clientWidth,

    // Parts that hold more than they show without scrolling.
    cut: () => [...document.querySelectorAll(".scroll")]
      .filter((each) => seen(each) && (each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight))
      .map((each) => each.getAttribute("aria-label")),

    column: (table, place) => [...document.querySelector(table).tBodies[0].rows]
      .filter((row) => !row.hidden).map((row) => row.cells[place].textContent.trim()),
  };
})();
