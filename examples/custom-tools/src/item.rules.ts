import { Injectable } from '@nestjs/common';
import {
  AgentDescription,
  AgentFields,
  AgentMethod,
  type MethodCall,
  ParseClass,
  Prompt,
  type PromptCall,
  Refused,
  refusals,
} from '@parley/server';
import { SHELVES } from './shelves.js';

/** What agents may know of items, which is not what they cost, and what can be done with one. */
@ParseClass('Item')
@AgentDescription('What lies in the warehouse')
@AgentFields('name', 'shelf', 'stock')
@Injectable()
export class ItemRules {
  @AgentMethod({
    description: 'Puts an item on another shelf',
    permission: 'write',
    type: 'instance',
    permittedKeys: ['shelf'],
    parameters: { type: 'object', properties: { shelf: { enum: SHELVES } }, required: ['shelf'] },
    supportsDryRun: true,
  })
  async move({ shelf }: { readonly shelf?: unknown }, call: MethodCall) {
    const to = SHELVES.find((known) => known === shelf);
    if (!to) throw new Refused(refusals.invalidArgument(`shelf must be one of ${SHELVES.join(', ')}`));
    // This is what the person is shown who is asked for a yes.
    if (call.dryRun) return { would_move: call.receiver?.['name'], from: call.receiver?.['shelf'], to };
    return call.writes?.update('Item', call.objectId, { shelf: to });
  }

  @Prompt({
    name: 'stocktake',
    description: 'Begins a stocktake of one shelf.',
    arguments: [{ name: 'shelf', description: `One of ${SHELVES.join(', ')}`, required: true }],
  })
  async stocktake({ args, records }: PromptCall) {
    const items = await records.find('Item', { where: { shelf: args.get('shelf') } });
    const expected = items.map(({ name, stock }) => `- ${String(name)}: ${String(stock)}`).join('\n');
    return `Count shelf ${args.get('shelf')} and report what differs from these figures:\n${expected}`;
  }
}
