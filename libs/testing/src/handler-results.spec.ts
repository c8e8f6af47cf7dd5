import {
  BadRequestException,
  ConflictException,
  ForbiddenException,
  GoneException,
  HttpException,
  Injectable,
  InternalServerErrorException,
  NotFoundException,
  UnauthorizedException,
} from '@nestjs/common';
import { type AgentRateLimiter, Tool } from '@parley/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestingApplication } from './create-testing-application.js';
import type { TestingApplication } from './testing-application.js';

let returns: () => unknown;

@Injectable()
class Desk {
  @Tool({ name: 'answer', description: 'What the test says.' })
  answer() {
    return returns();
  }

  @Tool({
    name: 'answer_in_form',
    description: 'The same, in a form.',
    output: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
  })
  answerInForm() {
    return returns();
  }
}

describe('What a handler returns', () => {
  let app: TestingApplication;
  beforeAll(async () => {
    app = await createTestingApplication({ agents: { clerk: {} }, tools: [Desk] });
  });
  afterAll(() => app.close());

  const answer = async (returned: unknown, tool = 'answer') => {
    returns = () => returned;
    return (await app.as('clerk').call(tool)).data;
  };
  const attempt = async (run: () => unknown) => {
    returns = run;
    const attempted = await app.as('clerk').attempt('answer');
    if (attempted.allowed) throw new Error('the call was allowed');
    return attempted.refusal;
  };

  it.each([
    ['data of an envelope', { success: true, data: { total: 3 } }, { total: 3 }],
    ['a list of an envelope', { success: true, data: [1, 2] }, [1, 2]],
    ['null of an envelope', { success: true, data: null }, null],
    ['success alone', { success: true }, { success: true }],
    [
      'members that no envelope has',
      { success: true, data: 1, page: 2 },
      { success: true, data: 1, page: 2 },
    ],
    ['a success that is no boolean', { success: 'no', data: 1 }, { success: 'no', data: 1 }],
    ['a failure among other members', { success: false, score: 1 }, { success: false, score: 1 }],
    ['data without success', { data: 1 }, { data: 1 }],
  ])('is data: %s', async (_, returned, expected) => {
    expect(await answer(returned)).toEqual(expected);
  });

  it('fits an output schema by the data of its envelope', async () => {
    expect(await answer({ success: true, data: { total: 3 } }, 'answer_in_form')).toEqual({ total: 3 });
  });

  it.each([
    ['a code of Parley', { error: 'closed', error_code: 'invalid_argument' }, 'invalid_argument', 'closed'],
    [
      'a code of its own',
      { error: 'declined', error_code: 'CARD_DECLINED' },
      'application:CARD_DECLINED',
      'declined',
    ],
    ['no code', { error: 'closed' }, 'internal_error', 'closed'],
    ['a code that is none', { error: 'closed', error_code: 'no code' }, 'internal_error', 'closed'],
    ['nothing more', {}, 'internal_error', "Tool 'answer' failed"],
    ['a cancellation', { cancelled: true }, 'cancelled', 'Cancelled by client'],
    ['a cancellation with a text', { cancelled: true, error: 'Stopped' }, 'cancelled', 'Stopped'],
  ])('is a failure with %s', async (_, members, code, text) => {
    const refusal = await attempt(() => ({ success: false, ...members }));
    expect(refusal).toMatchObject({ text, gate: code === 'cancelled' ? 'cancellation' : 'tool' });
    expect(refusal.record.error_code).toBe(code);
  });

  it('sends the code and the details of a failure as the tool named them', async () => {
    returns = () => ({
      success: false,
      error: 'declined',
      error_code: 'card_declined',
      details: { card: '…42' },
    });
    const agent = app.parley.agentFor({ agent: 'clerk', principal: 'p' });
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'answer', arguments: {} },
    };
    const { body } = await app.parley.handle(message, agent);
    expect(body?.['result']).toMatchObject({
      isError: true,
      _meta: { 'parse.error_code': 'card_declined', 'parse.details': { card: '…42' } },
    });
  });

  it.each([
    ['a text that is none', { error: { message: 'a' } }],
    ['details that are none', { error: 'a', details: 5 }],
    ['details without a form', { error: 'a', details: { at: new Map() } }],
    ['details that are large', { error: 'a', details: { at: 'x'.repeat(9000) } }],
  ])('is an error of the tool, and nothing of it is sent: %s', async (_, members) => {
    const refusal = await attempt(() => ({ success: false, ...members }));
    expect(refusal).toMatchObject({ code: 'internal_error', failed: true });
    expect(refusal.text).not.toMatch(/a"|xxx/);
  });

  const refuse = (error: Error) => () => {
    throw error;
  };
  it.each([
    [new BadRequestException('late'), 'invalid_argument'],
    [new HttpException('odd', 422), 'invalid_argument'],
    [new HttpException('large', 413), 'invalid_argument'],
    [new UnauthorizedException('who'), 'access_denied'],
    [new ForbiddenException('no'), 'access_denied'],
    [new NotFoundException('no such repair'), 'not_found'],
    [new GoneException('gone'), 'not_found'],
    [new ConflictException('taken'), 'conflict'],
    [new HttpException('changed', 412), 'conflict'],
    [new HttpException('slow', 408), 'timeout'],
  ])('means, as an HTTP exception, what its status does: %s', async (error, code) => {
    const refusal = await attempt(refuse(error));
    expect(refusal).toMatchObject({
      code,
      gate: 'application',
      text: expect.stringContaining(error.message),
    });
  });

  it.each([
    [{ message: 'many', retryAfter: 7 }, 7],
    [{ message: 'many', retry_after: '2.5' }, 2.5],
    ['many', 60],
  ])('says when to come back after 429: %j', async (response, seconds) => {
    expect(await attempt(refuse(new HttpException(response, 429)))).toMatchObject({
      code: 'rate_limited',
      retryAfter: seconds,
    });
  });

  it('stays inside as a server error', async () => {
    const refusal = await attempt(refuse(new InternalServerErrorException('db at 10.0.0.1')));
    expect(refusal).toMatchObject({ code: 'internal_error', failed: true });
    expect(refusal.text).not.toContain('10.0.0.1');
  });
});

describe('A limiter of the application', () => {
  let check: AgentRateLimiter['check'];
  let app: TestingApplication;
  beforeAll(async () => {
    app = await createTestingApplication({});
  });
  afterAll(() => app.close());

  const call = (given: () => unknown, rate?: { limit: number; window: number }) => {
    check = given as never;
    const rateLimiter = { check: (key: string) => check(key), ...(rate && { rate }) };
    return app.as({ rateLimiter }).attempt('list_tools');
  };

  it.each([
    ['true', () => true],
    ['null', () => null],
    ['undefined', () => undefined],
    ['a promise of true', () => Promise.resolve(true)],
  ])('permits a call by %s', async (_, given) => {
    expect((await call(given)).allowed).toBe(true);
  });

  it.each([
    [
      'an answer',
      () => ({ retryAfter: 3, limit: 100, window: 10 }),
      /^Rate limit exceeded \(100 requests per 10s\)\. Retry after 3\.0s$/,
    ],
    [
      'an answer without its rate',
      () => ({ retryAfter: 3 }),
      /^Rate limit exceeded \(60 requests per 60s\)\. Retry after 3\.0s$/,
    ],
    [
      'an error',
      () => {
        throw Object.assign(new Error('x'), { retryAfter: 9, limit: 5, window: 60 });
      },
      /^Rate limit exceeded \(5 requests per 60s\)\. Retry after 9\.0s$/,
    ],
    [
      'another error',
      () => Promise.reject(new Error('redis at 10.0.0.1')),
      /^Rate limit exceeded \(60 requests per 60s\)\. Retry after [1-5]\.\ds$/,
    ],
    ['false', () => false, /^Rate limit exceeded \(60 requests per 60s\)\. Retry after [1-5]\.\ds$/],
    ['a text', () => 'no', /^Rate limit exceeded \(60 requests per 60s\)\. Retry after [1-5]\.\ds$/],
    [
      'a time that is none',
      () => ({ retryAfter: Number.NaN }),
      /^Rate limit exceeded \(60 requests per 60s\)\. Retry after [1-5]\.\ds$/,
    ],
  ])('refuses a call by %s', async (_, given, text) => {
    const attempt = await call(given);
    expect(attempt.allowed || attempt.refusal).toMatchObject({
      code: 'rate_limited',
      gate: 'rate_limit',
      text: expect.stringMatching(text),
    });
  });

  it('fails as its own rate', async () => {
    const attempt = await call(() => Promise.reject(new Error('x')), { limit: 7, window: 9 });
    expect(!attempt.allowed && attempt.refusal.text).toMatch(/\(7 requests per 9s\)/);
  });
});
