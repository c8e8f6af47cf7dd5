import { Inject, Module } from '@nestjs/common';
import { Tool } from '@parley/server';
import { decorateMethod } from './decorate-method.mjs';

/**
 * A plugin of one provider: what `@Tool`, `@Inject` and `@Module` do in TypeScript.
 * @param {new (...parts: any[]) => object} provider
 * @param {Record<string, import('@parley/server').ToolOptions>} tools by method
 * @param {...import('@nestjs/common').InjectionToken} parts of its constructor
 */
export function makePlugin(provider, tools, ...parts) {
  for (const [name, options] of Object.entries(tools)) decorateMethod(Tool(options), provider, name);
  for (const [index, token] of parts.entries()) Inject(token)(provider, undefined, index);
  class Plugin {}
  Module({ providers: [provider] })(Plugin);
  return Plugin;
}
