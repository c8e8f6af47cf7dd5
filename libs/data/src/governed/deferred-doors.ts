import type { Tier } from '#agent';
import type { GovernedMethods } from '../governed-methods.js';
import type {
  AutocompleteRequest,
  FacetRequest,
  GovernedSearch,
  TextSearchRequest,
} from '../governed-search.js';
import type { GovernedClassWrites, GovernedWrites, ProposedWrite, WriteOptions } from '../governed-writes.js';
import { OpenedOnce } from './opened-once.js';

export class DeferredWrites extends OpenedOnce<GovernedWrites> implements GovernedWrites {
  create(className: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((door) => door.create(className, fields, options));
  }

  update(className: unknown, objectId: unknown, fields: unknown, options?: WriteOptions) {
    return this.through((door) => door.update(className, objectId, fields, options));
  }

  delete(className: unknown, objectId: unknown, options?: WriteOptions) {
    return this.through((door) => door.delete(className, objectId, options));
  }

  judge(write: ProposedWrite) {
    return this.through((door) => door.judge(write));
  }
}

export class DeferredSearch extends OpenedOnce<GovernedSearch> implements GovernedSearch {
  text(className: unknown, request: TextSearchRequest) {
    return this.through((door) => door.text(className, request));
  }

  autocomplete(className: unknown, request: AutocompleteRequest) {
    return this.through((door) => door.autocomplete(className, request));
  }

  facets(className: unknown, request: FacetRequest) {
    return this.through((door) => door.facets(className, request));
  }

  likeness(className: unknown) {
    return this.through((door) => door.likeness(className));
  }
}

export class DeferredClassWrites extends OpenedOnce<GovernedClassWrites> implements GovernedClassWrites {
  createClass(className: unknown, fields?: unknown) {
    return this.through((door) => door.createClass(className, fields));
  }

  deleteClass(className: unknown) {
    return this.through((door) => door.deleteClass(className));
  }
}

export class DeferredMethods extends OpenedOnce<Omit<GovernedMethods, 'writes'>> implements GovernedMethods {
  constructor(
    open: () => Promise<Omit<GovernedMethods, 'writes'>>,
    private readonly openWrites: () => GovernedWrites,
  ) {
    super(open);
  }

  enter(className: unknown) {
    return this.through((door) => door.enter(className));
  }

  permit(className: string, permission: Tier, type: 'instance' | 'class') {
    return this.through((door) => door.permit(className, permission, type));
  }

  writes(): GovernedWrites {
    return this.openWrites();
  }

  present(result: unknown) {
    return this.through((door) => door.present(result));
  }
}
