import { describe, expect, it, vi } from 'vitest';
import { type MessageBus, ProcessMessageBus, SharedStateUnavailable } from '#state';
import { CachedPrincipalDirectory, PrincipalDirectory } from './identity/principal-directory.js';
import { ClassSchemas, RenewedCatalogue, WrittenClasses } from './schema-store.js';

class CountedDirectory extends PrincipalDirectory {
  asked = 0;
  ownerOfSession = () => Promise.resolve(null);
  findUser(): Promise<null> {
    return Promise.resolve(null);
  }

  rolesOfUser = () => {
    this.asked += 1;
    return Promise.resolve([]);
  };
  rolesOfRole = () => Promise.resolve([]);
}

class CountedCatalogue extends RenewedCatalogue {
  forgotten = 0;
  listIndexes = () => Promise.resolve([]);
  protected load = () => Promise.resolve(new ClassSchemas([]));
  override forget(): void {
    this.forgotten += 1;
  }
}

/** The cache of one replica, and its subscription to writes. */
function replica(bus: MessageBus) {
  const source = new CountedDirectory();
  const cache = new CachedPrincipalDirectory(source);
  const catalogue = new CountedCatalogue();
  const written = new WrittenClasses(bus);
  written.watchSchemas(catalogue);
  return { source, cache, catalogue, rows: written.watchRows(cache) };
}

describe('what replicas remember', () => {
  it('of roles is read again on every replica once one of them wrote a role or a user', async () => {
    const bus = new ProcessMessageBus();
    const [here, there] = [replica(bus), replica(bus)];
    for (const className of ['_Role', '_User']) {
      await there.cache.rolesOfUser('ada');
      const before = there.source.asked;
      await there.cache.rolesOfUser('ada');
      expect(there.source.asked).toBe(before);
      here.rows.forgetClass(className);
      await vi.waitFor(async () => {
        await there.cache.rolesOfUser('ada');
        expect(there.source.asked).toBe(before + 1);
      });
    }
  });

  it('of classes is read again on every replica once one of them changed a class', async () => {
    const bus = new ProcessMessageBus();
    const [here, there] = [replica(bus), replica(bus)];
    here.catalogue.invalidate();
    await vi.waitFor(() => expect(there.catalogue.forgotten).toBe(1));
    expect(there.source.asked).toBe(0);
  });

  it('of classes is forgotten once where the class was changed: what is read afterwards stays', async () => {
    const bus = new ProcessMessageBus();
    const [here, there] = [replica(bus), replica(bus)];
    here.catalogue.invalidate();
    await vi.waitFor(() => expect(there.catalogue.forgotten).toBe(1));
    expect(here.catalogue.forgotten).toBe(1);
  });

  it('is not touched by writes of other classes, nor by messages that name none', async () => {
    const bus = new ProcessMessageBus();
    const [here, there] = [replica(bus), replica(bus)];
    await there.cache.rolesOfUser('ada');
    here.rows.forgetClass('Post');
    for (const message of [{}, { className: 7 }, { className: ['_Role'] }, { className: 'Post' }])
      await bus.publish('written-classes', message);
    here.catalogue.invalidate();
    await vi.waitFor(() => expect(there.catalogue.forgotten).toBe(1));
    await there.cache.rolesOfUser('ada');
    expect(there.source.asked).toBe(1);
  });

  it('is forgotten here although other replicas cannot be notified', async () => {
    const bus = new ProcessMessageBus();
    vi.spyOn(bus, 'publish').mockRejectedValue(new SharedStateUnavailable());
    const here = replica(bus);
    await here.cache.rolesOfUser('ada');
    here.rows.forgetClass('_Role');
    await here.cache.rolesOfUser('ada');
    expect(here.source.asked).toBe(2);
  });
});
