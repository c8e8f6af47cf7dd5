import type { OutageEvent } from './audit-event.js';

/** A while in which records could not be kept: what of it is told afterwards, since it could not be told at the time. */
export class Outage {
  private since: string | null = null;
  private refusals = 0;
  private losses = 0;

  get isOn(): boolean {
    return this.since !== null;
  }

  /** A call was refused for it. */
  refused(): void {
    this.begin();
    this.refusals += 1;
  }

  /** A record found no room. */
  dropped(): void {
    this.begin();
    this.losses += 1;
  }

  ended(): OutageEvent {
    const event: OutageEvent = {
      type: 'outage',
      at: new Date().toISOString(),
      success: false,
      since: this.since ?? new Date().toISOString(),
      refused: this.refusals,
      dropped: this.losses,
    };
    this.since = null;
    this.refusals = 0;
    this.losses = 0;
    return event;
  }

  private begin(): void {
    this.since ??= new Date().toISOString();
  }
}
