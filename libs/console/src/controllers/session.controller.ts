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
  Req,
  Res,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JsonBodyInterceptor, trustedHeaders, validated } from '#streaming';
import {
  ArrivalGuard,
  ConsoleController,
  CurrentOperator,
  OperatorGuard,
  SameSiteGuard,
} from '../console.guards.js';
import type { Operator } from '../operator-gate.js';
import { setCookie } from '../operator-sessions.js';
import { SignIn, SignInBody } from '../sign-in.js';

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

/** The session of a browser. */
@ConsoleController('console/session', ArrivalGuard, SameSiteGuard)
export class SessionController {
  constructor(@Inject(SignIn) private readonly signIn: SignIn) {}

  @Get()
  @UseGuards(OperatorGuard)
  async renew(
    @CurrentOperator() current: Operator,
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<object> {
    const { operator, cookie } = await this.signIn.renew(request, current);
    if (cookie !== undefined) response.setHeader('Set-Cookie', cookie);
    return operator;
  }

  @Post()
  @HttpCode(200)
  @UseGuards(SignInLimitGuard)
  @UseInterceptors(JsonBodyInterceptor)
  async begin(
    @Body(validated(SignInBody)) body: SignInBody,
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<object> {
    const { operator, cookie } = await this.signIn.begin(request, body);
    if (cookie !== undefined) response.setHeader('Set-Cookie', cookie);
    return operator;
  }

  /** The browser forgets its session even when the sign-out cannot be remembered for copies of it. */
  @Delete()
  async end(
    @Req() request: IncomingMessage,
    @Res({ passthrough: true }) response: ServerResponse,
  ): Promise<object> {
    response.setHeader('Set-Cookie', setCookie('', 0, trustedHeaders(request)));
    await this.signIn.end(request);
    return { signed_in: false };
  }
}
