/** Sessions of users as Parse keeps them, for acting as one. Tokens are credentials: they go to nobody but the asker. */
export abstract class UserSessions {
  /** The token of the user's newest session that has not ended; null: there is none. @throws StoreError */
  abstract newest(userId: string): Promise<string | null>;
  /**
   * Makes a restricted session that ends within the hour.
   * @returns its token; null: no such user
   * @throws StoreError
   */
  abstract mint(userId: string): Promise<string | null>;
}
