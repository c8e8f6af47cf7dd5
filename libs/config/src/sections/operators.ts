import { IsIn, IsInt, IsNumber, IsPositive, IsString, Matches, Max, Min, MinLength } from 'class-validator';
import { Nullable } from '#schema';
import { AnyOf, IsText, IsTexts, ListOf, Nested, Option, type Plain } from '../schema/option.js';
import { CLAIM } from './auth.js';

/** Where new cases are announced. */
export class ApprovalWebhookConfig {
  @Option('where new cases are sent', { required: true })
  @IsString()
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
  readonly url!: string;

  @Option('the secret of the signature', { required: true })
  @IsString()
  @MinLength(16)
  readonly secret!: string;
}

/** The section `approvals`: who decides when the policy wants approval (docs/guide/approvals.md). */
export class ApprovalsSection {
  @Option(
    '`client`: the person at the calling client. `desk`: another person, over the approval routes. `both`: first the client, then the other person',
  )
  @IsIn(['client', 'desk', 'both'])
  readonly mode: 'client' | 'desk' | 'both' = 'client';

  @Option('names of the agents that may decide over the approval routes')
  @IsTexts()
  readonly approvers: readonly string[] = [];

  @Option(
    '`{ url, secret }`: receives every new case. https, or an address of this machine. Any other name must not resolve to this machine: [names](threat-model.md#names-that-lead-elsewhere)',
  )
  @Nested(ApprovalWebhookConfig)
  @Nullable()
  readonly webhook: Plain<ApprovalWebhookConfig> | null = null;

  @Option('seconds that a case waits for another person, and that the approval can be used')
  @IsNumber()
  @IsPositive()
  @Max(604_800)
  readonly expiry: number = 300;
}

/** A rule of `console.oidc`: who is an operator. */
export class OperatorRuleConfig {
  @Option(
    'the claim, or the names that lead to one inside others. `email` counts only with `email_verified: true`',
    {
      required: true,
    },
  )
  @AnyOf(...CLAIM)
  readonly claim!: string | readonly string[];

  @Option('a text, or several of which one must match: the value of the claim, or an entry of its list', {
    required: true,
  })
  @AnyOf(...CLAIM)
  readonly equals!: string | readonly string[];

  @Option('the operator that such a person is: one of `console.operators`', { required: true })
  @IsText()
  readonly agent!: string;
}

/** `console.oidc`: operators sign in with an issuer (docs/operations/console.md). */
export class ConsoleOidcConfig {
  @Option('the issuer; default: the only one of `auth`. https, or http on this machine')
  @IsString()
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
  readonly issuer?: string;

  @Option('of the console, as a client of the issuer', { required: true })
  @IsText()
  readonly clientId!: string;

  @Option('of the console, as a client of the issuer; null: a public client, with PKCE alone')
  @IsText()
  @Nullable()
  readonly clientSecret: string | null = null;

  @Option(
    'the address of the console that browsers know, ending with `/console/session/oidc/callback`; registered at the issuer',
    { required: true },
  )
  @IsString()
  @Matches(/^https?:\/\/.*\/console\/session\/oidc\/callback$/, {
    message: 'the URL of the console for browsers, ending in /console/session/oidc/callback',
  })
  readonly redirectUri!: string;

  @Option('scopes that are requested besides `openid`')
  @IsTexts()
  readonly scopes: readonly string[] = [];

  @Option(
    '`[{ claim, equals, agent }]`: who is an operator; the first rule that fits decides. Nobody else is one',
  )
  @ListOf(OperatorRuleConfig)
  readonly operators: readonly Plain<OperatorRuleConfig>[] = [];

  @Option('seconds after which the issuer is asked again')
  @IsInt()
  @Min(60)
  @Max(28_800)
  readonly maxAge: number = 3600;
}

/** The section `console`: the operators' page (docs/operations/console.md). */
export class ConsoleSection {
  @Option(
    'names of the agents that may open it; null: `/console` is 404. An agent that needs no credential stops the start',
  )
  @IsTexts()
  @Nullable()
  readonly operators: readonly string[] | null = null;

  @Option(
    '`{ issuer, clientId, … }`: operators sign in with an issuer of OpenID Connect, [below](#with-an-issuer)',
  )
  @Nested(ConsoleOidcConfig)
  @Nullable()
  readonly oidc: Plain<ConsoleOidcConfig> | null = null;
}
