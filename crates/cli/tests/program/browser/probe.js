// What a reader of the page would stumble over; an object for the test. Nothing in the page itself is a script.
(() => {
  const problems = [];
  const shorten = text => text.trim().replace(/\s+/g, ' ').slice(0, 60);

  // --- Width: nothing is cut off at the right, and nothing makes the page scroll sideways.
  if (document.documentElement.scrollWidth > innerWidth) {
    problems.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);
  }

  for (const claims of document.querySelectorAll('.claims')) {
    if (claims.scrollWidth > claims.clientWidth + 1) {
      problems.push(`claims that scroll sideways: ${claims.getAttribute('aria-label')}`);
    }
  }

  // --- Plots: seen, within the window, their texts apart and of a readable size.
  // Each is there in two widths, of which one is shown.
  const plots = [...document.querySelectorAll('svg')].filter(plot => plot.getClientRects().length);
  for (const figure of document.querySelectorAll('figure')) {
    const shown = [...figure.querySelectorAll('svg')].filter(plot => plot.getClientRects().length);
    if (shown.length !== 1) problems.push(`a figure that shows ${shown.length} plots: ${shorten(figure.textContent)}`);
  }
  for (const plot of plots) {
    const name = plot.querySelector('title')?.textContent ?? 'without a name';
    const box = plot.getBoundingClientRect();
    if (box.width < 200 || box.height < 40) problems.push(`a plot that is not seen: ${name}`);
    if (box.right > innerWidth + 1 || box.left < -1) problems.push(`a plot wider than the window: ${name}`);
    const texts = [...plot.querySelectorAll('text')].map(text => ({ text, box: text.getBoundingClientRect() }));
    for (const { text, box: own } of texts) {
      const scale = box.width / plot.viewBox.baseVal.width;
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (size < 10) problems.push(`text of ${size.toFixed(1)} pixels in ${name}: ${text.textContent}`);
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1) {
        problems.push(`text outside its plot in ${name}: ${text.textContent}`);
      }
    }
    for (let a = 0; a < texts.length; a++) {
      for (let b = a + 1; b < texts.length; b++) {
        const [one, two] = [texts[a].box, texts[b].box];
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        // Line boxes are higher than letters.
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (wide > 1 && high > 4) {
          problems.push(`texts over each other in ${name}: ${texts[a].text.textContent} / ${texts[b].text.textContent}`);
        }
      }
    }
  }

  // --- Contrast of all text (WCAG 2.2, 1.4.3: at least 4.5 to 1).
  const numbers = colour => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const linear = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const backgroundOf = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  // In a plot the ground is the last bar drawn before the text and around its middle.
  const groundOf = text => {
    const own = text.getBoundingClientRect();
    const [x, y] = [(own.left + own.right) / 2, (own.top + own.bottom) / 2];
    let ground = backgroundOf(text);
    for (const bar of text.ownerSVGElement.querySelectorAll('rect')) {
      const box = bar.getBoundingClientRect();
      const before = bar.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before && box.left <= x && x <= box.right && box.top <= y && y <= box.bottom) {
        ground = numbers(getComputedStyle(bar).fill);
      }
    }
    return ground;
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.getClientRects().length) continue;
    const isPlot = element instanceof SVGTextElement;
    const style = getComputedStyle(element);
    const ink = luminance(numbers(isPlot ? style.fill : style.color));
    const paper = luminance(isPlot ? groundOf(element) : backgroundOf(element));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) faint.add(`contrast of ${contrast.toFixed(1)}: ${shorten(node.textContent)}`);
  }
  problems.push(...faint);

  // --- Names: what can be focused and what links somewhere.
  for (const region of document.querySelectorAll('[role=region], nav, section')) {
    if (!region.getAttribute('aria-label')) problems.push(`a part without a name: ${shorten(region.textContent)}`);
  }
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    if (!document.getElementById(link.hash.slice(1))) problems.push(`a link to nowhere: ${link.hash}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map(element => element.id);
  for (const id of ids.filter((id, at) => ids.indexOf(id) < at)) problems.push(`an id that stands twice: ${id}`);

  // --- What is there, for the test to compare.
  return {
    problems,
    plots: plots.length,
    widest: Math.max(0, ...plots.map(plot => plot.getBoundingClientRect().width)),
    files: [...document.querySelectorAll('a[download]')].map(link => ({ name: link.download, url: link.href })),
    folded: [...document.querySelectorAll('details.folded')].map(part => part.open),
    tables: document.querySelectorAll('table').length,
    sections: [...document.querySelectorAll('section')].map(section => ({
      id: section.id,
      plots: section.querySelectorAll('figure svg[role=img]').length,
      claims: section.querySelectorAll('.claims tbody tr').length,
      command: section.querySelector('code')?.textContent ?? '',
    })),
  };
})()
