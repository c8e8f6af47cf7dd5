/** Opens a governed door at first use and keeps it for the call. */
export class OpenedOnce<Door> {
  private opened: Promise<Door> | undefined;

  constructor(private readonly open: () => Promise<Door>) {}

  /** What the opened door answers. A refusal that a tool forgot to wait for ends nothing; whoever waits is refused. */
  protected through<Answer>(use: (door: Door) => Promise<Answer>): Promise<Answer> {
    const answer = (this.opened ??= this.open()).then(use);
    // Node ends the process for a rejection that nobody handles: any agent that may call such a tool could do that.
    answer.catch(() => undefined);
    return answer;
  }
}
