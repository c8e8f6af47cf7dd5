import { Tool, ToolContent } from '@parley/server';
import { decorateMethod } from '../support/decorate-method.mjs';

/** Blocks every fixture uses: the runner looks at their shape, not at what they show. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

/** @returns {import('@parley/server').ContentBlock} */
export const textBlock = (text) => ({ type: 'text', text });
export const said = (text) => new ToolContent([textBlock(text)]);

/** An object schema whose properties are all required texts. */
export const texts = (...names) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
});

/** The question of a form, whose fields are required unless told otherwise. */
export const form = (message, properties, required = Object.keys(properties)) => ({
  kind: 'form',
  message,
  schema: { type: 'object', properties, required },
});

/** Makes the methods of a provider tools of the same name: what `@Tool` does in TypeScript. */
export function declareTools(provider, declarations) {
  for (const [name, options] of Object.entries(declarations)) {
    const tool = Tool({ name, description: `Conformance fixture ${name}.`, ...options });
    decorateMethod(tool, provider, name);
  }
}
