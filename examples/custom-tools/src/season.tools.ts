import { Injectable } from '@nestjs/common';
import { defineTool, Tool, ToolRegistry } from '@parley/server';
import { z } from 'zod';

const Season = z.object({ open: z.boolean() });

/** A tool that registers another tool for a while. Clients with a listening stream are notified that the list changed. */
@Injectable()
export class SeasonTools {
  private remove: (() => void) | null = null;

  constructor(private readonly tools: ToolRegistry) {}

  @Tool({
    name: 'set_season',
    description: 'Opens or closes the season, in which parcels are wrapped as presents.',
    permission: 'write',
    input: Season,
  })
  set({ open }: z.output<typeof Season>) {
    if (open) this.remove ??= this.tools.register({ ...WRAPPING, handler: () => ({ euros: 3.5 }) });
    else this.remove?.();
    if (!open) this.remove = null;
    return { open };
  }
}

const WRAPPING = defineTool({ name: 'gift_wrap', description: 'What a parcel costs as a present.' });
