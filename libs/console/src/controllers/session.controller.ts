import {
  Body,
  type CanActivate,
  Delete,
  type ExecutionContext,
  Get,
  HttpCode,
  Inject,
  Injectable,
  Post,
  Query,
  Req,
  Res,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ArrivalGuard, JsonBodyInterceptor, createValidationPipe } from '#streaming';
import {
  ConsoleController,
  CurrentOperator,
  OperatorGuard,
  SameSiteGuard,
  WithoutSharedState,
} from '../console.guards.js';
import { type OidcAnswer, OidcSignIn, type SignInMethods } from '../oidc-sign-in.js';
import type { Operator } from '../operator-gate.js';
import { readPlace, setCookie } from '../operator-sessions.js';
import { type ShownOperator, SignIn, SignInBody } from '../sign-in.js';

/** Limits attempts to sign in, before their bodies are read. */
@Injectable()
class SignInLimitGuard implements CanActivate {
  constructor(@Inject(SignIn) private readonly signIn: SignIn) {}

  /** @throws NotServed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    await this.signIn.spend(context.switchToHttp().getRequest());
    return true;
  }
}

export interface SignOutAnswer {
  readonly signed_in: false;
  /** Where the session at the issuer ends; null: there is none. */
  readonly issuer_sign_out: string | null;
}

/** The session of a browser. */
@ConsoleController('console/session', ArrivalGuard, SameSiteGuard)
export class SessionController {
  constructor(
    @Inject(SignIn) private readonly signIn: SignIn,
    @Inject(OidcSignIn) private readonly oidc: OidcSignIn,
  ) {}

  /** Needs no credential: it names the ways to sign in, and no operator. */
  @Get('methods')
  methods(@Req() request: IncomingMessage): SignInMethods {
    return this.oidc.methods(request);
  }

  @Get('oidc')
  async beginAtIssuer(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    redirect(response, 302, await this.oidc.begin(request, () => this.signIn.spend(request)));
  }

  @Get()
  @UseGuards(OperatorGuard)
  @WithoutSharedState()
  async renew(
    @CurrentOperator() current: Operator,
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<ShownOperator> {
    const { operator, cookie } = await this.signIn.renew(request, current);
    if (cookie !== undefined) response.setHeader('Set-Cookie', cookie);
    return operator;
  }

  @Post()
  @HttpCode(200)
  @UseGuards(SignInLimitGuard)
  @UseInterceptors(JsonBodyInterceptor)
  async begin(
    @Body(createValidationPipe(SignInBody)) body: SignInBody,
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<ShownOperator> {
    const { operator, cookie } = await this.signIn.begin(request, body);
    if (cookie !== undefined) response.setHeader('Set-Cookie', cookie);
    return operator;
  }

  /** The browser forgets its session even when the sign-out cannot be remembered for copies of it. */
  @Delete()
  async end(
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<SignOutAnswer> {
    response.setHeader('Set-Cookie', setCookie('', 0, readPlace(request)));
    // An issuer that cannot be asked must not keep anybody from signing out.
    const issuerSignOut = await this.oidc.endOfSession(request).catch(() => null);
    await this.signIn.end(request);
    return { signed_in: false, issuer_sign_out: issuerSignOut };
  }
}

/** Where the issuer sends the browser back to: a request from another site, which proves itself by its state. */
@ConsoleController('console/session/oidc/callback', ArrivalGuard)
export class OidcCallbackController {
  constructor(
    @Inject(OidcSignIn) private readonly oidc: OidcSignIn,
    @Inject(SignIn) private readonly signIn: SignIn,
  ) {}

  @Get()
  async finish(
    @Query() answer: OidcAnswer,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    redirect(response, 303, await this.oidc.finish(request, answer, () => this.signIn.spend(request)));
  }
}

function redirect(
  response: ServerResponse,
  status: number,
  { location, cookies }: Awaited<ReturnType<OidcSignIn['finish']>>,
): void {
  response.writeHead(status, { Location: location, 'Set-Cookie': [...cookies], 'Content-Length': '0' });
  response.end();
}
