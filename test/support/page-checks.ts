/** Run in a page: controls without a name. */
export const UNNAMED = `[...document.querySelectorAll('button, input, select, textarea, a')]
  .filter((one) => !one.hidden && !one.labels?.length && !one.textContent.trim() && !one.getAttribute('aria-label'))
  .map((one) => one.outerHTML)`;

/** Run in a page: how much wider than its window it is. */
export const BEYOND =
  'Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)';

/** Run in a page: the name of what has the focus, as a screen reader reads it. */
export const FOCUSED = `[
  (one) => one.getAttribute('aria-label'),
  (one) => one.labels?.[0]?.textContent,
  (one) => one.textContent.trim(),
].map((read) => read(document.activeElement)).find(Boolean)`;

/** Run in a page: visible texts with less contrast to their ground than WCAG AA requires. */
export const PALE = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba('white');
  };
  const luminance = ([r, g, b]) =>
    [r, g, b]
      .map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
      .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  return [...document.querySelectorAll('body *')]
    .filter((one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .filter((one) => one.checkVisibility() && !one.closest('.unseen, svg, option, :disabled, .skip'))
    .filter((one) => {
      const [light, dark] = [rgba(getComputedStyle(one).color), ground(one)]
        .map(luminance)
        .sort((a, b) => b - a);
      return (light + 0.05) / (dark + 0.05) < 4.5;
    })
    .map((one) => one.className + ': ' + one.textContent.slice(0, 60));
})()`;
