/** The state that replicas share cannot be reached. Whoever depends on it refuses: it never goes on without. */
export class SharedStateUnavailable extends Error {
  constructor(cause?: unknown) {
    super('the shared state cannot be reached', { cause });
    this.name = 'SharedStateUnavailable';
  }
}
