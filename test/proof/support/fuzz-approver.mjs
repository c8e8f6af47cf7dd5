/** Milliseconds between two looks at what waits. */
const LOOK_INTERVAL = 20;

/** Of so many cases one is denied. */
const DENIED = 8;

/**
 * A person who decides whatever waits, soon after it has been shown.
 * @param desk `list()`, `show(id)` and `decide(id, verdict)` of approvals; what has ended meanwhile is null
 */
export function decideAll(desk) {
  let isOver = false;
  const decided = (async () => {
    for (let count = 1; !isOver;) {
      for (const { id } of (await desk.list()) ?? []) {
        const shown = await desk.show(id);
        if (!shown) continue;
        await desk.decide(id, { approved: count % DENIED > 0, digest: shown.digest });
        count += 1;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL));
    }
  })();
  return {
    end: () => {
      isOver = true;
      return decided;
    },
  };
}

/** The desk of a service. @param headers the credential of its approver */
export function deskOver(origin, headers) {
  const ask = async (path, body) => {
    const response = await fetch(`${origin}/approvals${path}`, {
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    const answer = await response.json();
    return response.ok ? answer : null;
  };
  return {
    list: async () => (await ask(''))?.approvals,
    show: (id) => ask(`/${id}`),
    decide: (id, { approved, digest }) => ask(`/${id}`, { decision: approved ? 'approve' : 'deny', digest }),
  };
}

/** The desk of an instance without a transport. @param service its `ApprovalService` @param viewer the approver */
export function deskWithin(service, viewer) {
  const { signal } = new AbortController();
  const read = async (asked) => {
    const { ok, value } = await asked;
    return ok ? value : null;
  };
  return {
    list: async () => (await read(service.list(viewer)))?.approvals,
    show: (id) => read(service.show(id, viewer, signal)),
    decide: (id, verdict) => read(service.decide(id, viewer, verdict, signal)),
  };
}
