import { Matches, ValidateIf } from 'class-validator';

/** Characters and length that a header may have. */
const CREDENTIAL = /^[\x21-\x7e]{1,4096}$/;
/** The message does not repeat the credential. */
const NO_CREDENTIAL = { message: 'this cannot be a credential' };

/** The body of a sign-in: a key or token, a Parse session, or both. */
export class SignInBody {
  @ValidateIf(({ key }: SignInBody) => key !== undefined)
  @Matches(CREDENTIAL, NO_CREDENTIAL)
  key?: string;

  @ValidateIf(({ session }: SignInBody) => session !== undefined)
  @Matches(CREDENTIAL, NO_CREDENTIAL)
  session?: string;
}
