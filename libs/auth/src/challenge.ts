/** What a client without a good token is told (RFC 6750, RFC 9728): where to find out how to get one, and with which scopes. */
export class BearerChallenge {
  /**
   * @param metadataUrl of the protected resource's metadata
   * @param scopes that every caller needs
   */
  constructor(
    private readonly metadataUrl: string,
    private readonly scopes: readonly string[],
  ) {}

  /** To whoever showed no token. */
  unknown(): string {
    return this.worded([], this.scopes);
  }

  invalid(): string {
    return this.worded(['error="invalid_token"'], this.scopes);
  }

  /** @param scopes all that the operation needs */
  insufficient(scopes: readonly string[]): string {
    return this.worded(['error="insufficient_scope"'], scopes);
  }

  // Scope names and the address come from the configuration, which admits nothing that would end a quoted text.
  private worded(error: readonly string[], scopes: readonly string[]): string {
    const scope = scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : [];
    return `Bearer ${[...error, ...scope, `resource_metadata="${this.metadataUrl}"`].join(', ')}`;
  }
}
