import { TimeoutError } from 'rxjs';
import { type Agent, Refused } from '#agent';
import { type ChangeSource, type RowView, SourceRefused, StoreError } from '#data';
import { Channel, type ChannelMember } from './channel.js';
import { Turns } from './turns.js';
import { neverTold, notToldNow } from './watch-refusals.js';

/** Questions to the database that run at a time, for all subscriptions together. */
const QUESTIONS_AT_ONCE = 8;

const UNCARRIED = 'no source of changes can carry the rights of this agent';

/** The channels that are open, and the choice of a source for each. */
export class Channels {
  private readonly open = new Map<string, Channel>();
  private readonly turns = new Turns(QUESTIONS_AT_ONCE);

  /** @param sources in the order in which they are preferred */
  constructor(private readonly sources: readonly ChangeSource[]) {}

  get available(): boolean {
    return this.sources.some((source) => source.available);
  }

  /** @throws Refused `access_denied` when no source could ever tell this agent */
  assertCarried(agent: Agent, view: RowView): void {
    if (this.candidates(agent, view).length === 0) throw new Refused(neverTold(UNCARRIED));
  }

  /** Keys of the channels that could carry this view for this agent, the preferred one first. */
  keysFor(agent: Agent, view: RowView): string[] {
    return this.candidates(agent, view).map(({ key }) => key);
  }

  /**
   * Joins the first channel that takes the member; it listens when this resolves.
   * @throws Refused `access_denied` when none may, `parse_error` when one might at another time
   */
  async join(agent: Agent, view: RowView, member: ChannelMember): Promise<Channel> {
    let passing: unknown;
    let final: unknown = UNCARRIED;
    for (const { source, key } of this.candidates(agent, view)) {
      const channel = this.at(key, source, agent, view);
      channel.join(member);
      try {
        await channel.ready();
        return channel;
      } catch (fault) {
        channel.leave(member);
        if (isForNow(fault)) passing = fault;
        else final = fault;
      }
    }
    throw new Refused(passing === undefined ? neverTold(causeOf(final)) : notToldNow(causeOf(passing)));
  }

  private candidates(agent: Agent, view: RowView): { source: ChangeSource; key: string }[] {
    return this.sources.flatMap((source) => {
      const key = source.available ? source.channel(agent, view) : null;
      return key === null ? [] : [{ source, key }];
    });
  }

  private at(key: string, source: ChangeSource, agent: Agent, view: RowView): Channel {
    const known = this.open.get(key);
    if (known) return known;
    const channel: Channel = new Channel(key, source.news(agent, view), this.turns, () => {
      if (this.open.get(key) === channel) this.open.delete(key);
    });
    this.open.set(key, channel);
    return channel;
  }
}

function isForNow(fault: unknown): boolean {
  if (fault instanceof TimeoutError) return true;
  return (
    fault instanceof SourceRefused && fault.cause instanceof StoreError && fault.cause.code !== 'unsupported'
  );
}

function causeOf(fault: unknown): string {
  const cause = fault instanceof SourceRefused ? fault.cause : fault;
  return cause instanceof Error ? cause.message : String(cause);
}
