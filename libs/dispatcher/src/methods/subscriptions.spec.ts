import { firstValueFrom, Subject } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  kernelUnderTest,
  type KernelUnderTest,
  MODERN,
  NOVEMBER,
  readResult,
  SmallSubscriptions,
  smallTool,
  succeeded,
} from '../contracts/kernel-under-test.js';
import { ListChanges, type ListKind } from './subscription-methods.js';
import { type Notification, StreamedResult } from '../protocol.js';

class Lists extends ListChanges {
  readonly kinds = new Set<ListKind>(['tools']);
  readonly changes = new Subject<ListKind>();

  follow(): Subject<ListKind> {
    return this.changes;
  }
}

const SESSION = { sessionId: 's1' };
const ID = 'io.modelcontextprotocol/subscriptionId';

let subscriptions: SmallSubscriptions;
let lists: Lists;
let under: KernelUnderTest;
beforeEach(() => {
  subscriptions = new SmallSubscriptions();
  lists = new Lists();
  under = kernelUnderTest(undefined, undefined, { subscriptions, listChanges: lists });
});

const capabilitiesOf = async (version: object) =>
  readResult(await under.ask('initialize', version)).capabilities;

describe('capabilities', () => {
  it('promise subscriptions exactly while they are supported', async () => {
    expect(await capabilitiesOf({ protocolVersion: '2025-06-18' })).toMatchObject({
      resources: { subscribe: true },
    });
    subscriptions.supported = false;
    expect(await capabilitiesOf({ protocolVersion: '2025-06-18' })).toEqual({
      tools: { listChanged: true },
      resources: { subscribe: false, listChanged: false },
      prompts: { listChanged: true },
    });
    expect(await capabilitiesOf({ protocolVersion: '2025-11-25' })).toMatchObject({ resources: {} });
  });

  it('promise changes of the list of resources only where they are sent', async () => {
    const discovered = readResult(await under.ask('server/discover', {}, MODERN));
    expect(discovered.capabilities).toEqual({
      tools: { listChanged: true },
      resources: { subscribe: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    });
    lists.kinds.add('resources');
    expect(readResult(await under.ask('server/discover', {}, MODERN)).capabilities).toMatchObject({
      resources: { listChanged: true },
    });
  });
});

describe('resources/subscribe', () => {
  it('subscribes the session and answers nothing', async () => {
    const reply = await under.ask('resources/subscribe', { uri: 'known://a' }, { ...NOVEMBER, ...SESSION });
    expect(reply).toEqual({ result: {} });
    expect([...(subscriptions.sessions.get('s1') ?? [])]).toEqual(['known://a']);
    expect(
      await under.ask('resources/unsubscribe', { uri: 'known://a' }, { ...NOVEMBER, ...SESSION }),
    ).toEqual({
      result: {},
    });
    expect(subscriptions.sessions.get('s1')?.size).toBe(0);
  });

  it('never answers success for a session that ended meanwhile', async () => {
    expect(await under.ask('resources/subscribe', { uri: 'known://a' })).toMatchObject({
      error: {
        code: -32602,
        message:
          'resources/subscribe: the session no longer has an open listening stream; reopen the GET stream and retry',
      },
    });
  });

  it('is not served while subscriptions are not supported', async () => {
    subscriptions.supported = false;
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
      expect(await under.ask(method, { uri: 'known://a' }, SESSION)).toMatchObject({
        error: { code: -32601, message: 'Resource subscriptions are not supported by this server' },
      });
    }
  });

  it.each([undefined, null, 5, {}, 'foreign://a'])('refuses %j as an address', async (uri) => {
    expect(await under.ask('resources/subscribe', { uri }, SESSION)).toMatchObject({
      error: { code: -32602 },
    });
  });

  it('does not exist in the stateless era', async () => {
    expect(await under.ask('resources/subscribe', { uri: 'known://a' }, MODERN)).toMatchObject({
      error: { code: -32601 },
      status: 404,
    });
  });
});

describe('subscriptions/listen', () => {
  const open = async (
    notifications: unknown,
  ): Promise<{ received: Notification[]; stream: StreamedResult }> => {
    const stream = await under.ask(
      'subscriptions/listen',
      { notifications },
      { ...MODERN, requestId: 'l-1' },
    );
    if (!(stream instanceof StreamedResult)) throw new Error(`no stream: ${JSON.stringify(stream)}`);
    return { received: [], stream };
  };
  const everything = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: false,
    resourceSubscriptions: ['known://a', 'foreign://b'],
  };

  it('acknowledges first what it honours, and sends that alone, tagged with the request', async () => {
    const { received, stream } = await open(everything);
    const listening = stream.messages.subscribe((message) => received.push(message));
    subscriptions.change('foreign://b');
    subscriptions.change('known://a');
    lists.changes.next('prompts');
    lists.changes.next('tools');
    const _meta = { [ID]: 'l-1' };
    expect(received).toEqual([
      {
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['known://a'] }, _meta },
      },
      { method: 'notifications/resources/updated', params: { uri: 'known://a', _meta } },
      { method: 'notifications/tools/list_changed', params: { _meta } },
    ]);
    expect(stream.final()).toEqual({ resultType: 'complete', _meta });
    listening.unsubscribe();
  });

  it('watches nothing before it is listened to, nor afterwards', async () => {
    const { stream } = await open(everything);
    expect(subscriptions.listening).toBe(0);
    const listening = stream.messages.subscribe();
    expect(subscriptions.listening).toBe(1);
    listening.unsubscribe();
    expect(subscriptions.listening).toBe(0);
    expect(lists.changes.observed).toBe(false);
  });

  it('asks for no change set beyond those that one request may watch', async () => {
    const sets = Array.from({ length: 1000 }, (_, n) => `parse://changes/${String(n).padStart(20, '0')}`);
    let running = 0;
    let most = 0;
    under.tools.add(smallTool('show_changes'), async () => {
      most = Math.max(most, (running += 1));
      await Promise.resolve();
      running -= 1;
      return succeeded({});
    });
    const { stream } = await open({ resourceSubscriptions: sets });
    const acknowledged = await firstValueFrom(stream.messages);
    expect(acknowledged.params).toMatchObject({ notifications: {} });
    expect(under.tools.calls.map(({ args }) => args)).toEqual(
      sets.slice(0, subscriptions.maxListened).map((uri) => ({ change_set: uri.slice(-20) })),
    );
    expect(most).toBe(1);
  });

  it('stays open without notifications when nothing is honoured', async () => {
    subscriptions.supported = false;
    const { received, stream } = await open({ resourceSubscriptions: ['known://a'], somethingElse: true });
    let ended = false;
    const listening = stream.messages.subscribe({
      next: (message) => received.push(message),
      complete: () => (ended = true),
    });
    expect(received).toMatchObject([{ params: { notifications: {} } }]);
    expect(ended).toBe(false);
    listening.unsubscribe();
  });

  it.each([
    undefined,
    null,
    [],
    'all',
    { resourceSubscriptions: 'known://a' },
    { resourceSubscriptions: [1] },
  ])('refuses %j as a wish', async (notifications) => {
    expect(await under.ask('subscriptions/listen', { notifications }, MODERN)).toMatchObject({
      error: { code: -32602 },
    });
  });

  it('does not exist for revisions with sessions', async () => {
    expect(await under.ask('subscriptions/listen', { notifications: {} }, NOVEMBER)).toMatchObject({
      error: { code: -32601 },
    });
  });
});
