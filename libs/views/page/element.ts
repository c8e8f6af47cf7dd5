type Attributes = Readonly<Record<string, string>>;

/** An element with text content: row values are never parsed as HTML. */
export function element(name: string, attributes: Attributes = {}, text?: string): HTMLElement {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function drawElement(name: string, attributes: Attributes = {}, text?: string): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
