import fc from 'fast-check';
import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { CallUpdate } from '#core';
import { Agent, compileAgentDefinition } from '#core';
import { EdgeRequest, toNotifications, RunningRequests } from './edge-request.js';
import type { Message, ProtocolSession } from './message.js';
import type { Wire } from './sessions/wire.js';
import type { ResponseStream } from './sse/event-stream.js';

const NOVEMBER: ProtocolSession = {
  era: 'legacy',
  version: '2025-11-25',
  clientCapabilities: {},
  logLevel: undefined,
};
const TOKEN = { _meta: { progressToken: 't' } };

function collectSent(reported: readonly CallUpdate[], params: unknown, protocol: ProtocolSession) {
  const updates = new Subject<CallUpdate>();
  const sent: unknown[] = [];
  toNotifications(updates, params, protocol).subscribe(({ params: what }) => sent.push(what));
  for (const update of reported) updates.next(update);
  return sent;
}

const progress = (value: number): CallUpdate => ({ kind: 'progress', update: { progress: value } });

describe('the notifications of a running call', () => {
  it('carry the token of the client, and only rising progress', () => {
    expect(collectSent([1, 3, 2, 3, 4].map(progress), TOKEN, NOVEMBER)).toEqual(
      [1, 3, 4].map((value) => ({ progressToken: 't', progress: value })),
    );
  });

  it('carry every report where the revision does not require it to rise', () => {
    const oldest = { ...NOVEMBER, version: '2024-11-05' };
    expect(collectSent([2, 1].map(progress), TOKEN, oldest)).toHaveLength(2);
  });

  it('are not sent for progress without a token from 2025-11-25 on', () => {
    expect(collectSent([progress(1)], {}, NOVEMBER)).toEqual([]);
  });

  it('carry log messages from the wanted level on, in the order of the reports', () => {
    const log = (level: 'debug' | 'error'): CallUpdate => ({ kind: 'log', entry: { level, data: level } });
    expect(collectSent([log('debug'), progress(1), log('error'), progress(2)], TOKEN, NOVEMBER)).toEqual([
      { progressToken: 't', progress: 1 },
      { level: 'error', data: 'error' },
      { progressToken: 't', progress: 2 },
    ]);
    expect(collectSent([log('debug')], TOKEN, { ...NOVEMBER, logLevel: 'debug' })).toHaveLength(1);
    expect(collectSent([log('error')], TOKEN, { ...NOVEMBER, version: '2025-06-18' })).toEqual([]);
  });
});

function requestWith(stream: Pick<ResponseStream, 'send'> | null): EdgeRequest {
  const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'p' });
  const message = { method: 'tools/call', params: TOKEN, id: 1 } as unknown as Message;
  const options = { wire: {} as Wire, message, label: undefined, protocol: NOVEMBER, session: undefined };
  const request = new EdgeRequest(agent, options);
  request.responseStream = stream as ResponseStream | null;
  return request;
}

describe('a request at an edge', () => {
  it('fails a report that cannot be written at the tool that made it, and sends the next one', () => {
    const sent: unknown[] = [];
    const request = requestWith({ send: (message) => sent.push(JSON.stringify(message)) > 0 });
    const data: Record<string, unknown> = {};
    data['itself'] = data;
    expect(() => request.log?.({ level: 'error', data })).toThrow(TypeError);
    request.progress({ progress: 1 });
    expect(sent).toHaveLength(1);
  });

  it('drops reports where only the answer can be sent', () => {
    const request = requestWith(null);
    request.progress({ progress: 1 });
    expect(request).toMatchObject({ log: undefined, link: undefined });
  });

  it('keeps the first reason of its abort, also for a signal that is read later', () => {
    const request = requestWith(null);
    expect(request.aborted).toBe(false);
    request.abort('first');
    request.abort('second');
    expect(request).toMatchObject({ aborted: true, reason: 'first' });
    expect(request.signal).toMatchObject({ aborted: true, reason: 'first' });
  });
});

describe('the calls that run', () => {
  it('are aborted once each, and those that ended are never aborted, in whichever order calls end', () => {
    const turns = fc.array(fc.record({ begins: fc.boolean(), at: fc.nat() }), { maxLength: 60 });
    fc.assert(
      fc.property(turns, fc.boolean(), (steps, endsWhenAborted) => {
        const calls = new RunningRequests();
        const running: EdgeRequest[] = [];
        const ended: EdgeRequest[] = [];
        for (const { begins, at } of steps) {
          if (begins || running.length === 0) {
            const call = requestWith(null);
            calls.begin(call);
            running.push(call);
          } else {
            const [call] = running.splice(at % running.length, 1) as [EdgeRequest];
            calls.end(call);
            calls.end(call);
            ended.push(call);
          }
        }
        if (endsWhenAborted) for (const call of running) call.onAbort(() => calls.end(call));
        calls.endAll('server_shutdown');
        expect(running.map(({ reason }) => reason)).toEqual(running.map(() => 'server_shutdown'));
        expect(ended.some(({ aborted }) => aborted)).toBe(false);
      }),
    );
  });
});
