import type { Tier } from '#agent';
import type { GovernedMethods } from '../governed-methods.js';
import type {
  AutocompleteRequest,
  FacetRequest,
  GovernedSearch,
  TextSearchRequest,
} from '../governed-search.js';
import type { GovernedClassWrites, GovernedWrites, ProposedWrite } from '../governed-writes.js';

/** Opens a governed door at first use and keeps it for the call. */
class OpenedOnce<Door> {
  private opened: Promise<Door> | undefined;

  constructor(private readonly open: () => Promise<Door>) {}

  protected get door(): Promise<Door> {
    return (this.opened ??= this.open());
  }
}

export class DeferredWrites extends OpenedOnce<GovernedWrites> implements GovernedWrites {
  async create(className: unknown, fields: unknown) {
    return (await this.door).create(className, fields);
  }

  async update(className: unknown, objectId: unknown, fields: unknown) {
    return (await this.door).update(className, objectId, fields);
  }

  async delete(className: unknown, objectId: unknown) {
    return (await this.door).delete(className, objectId);
  }

  async judge(write: ProposedWrite) {
    return (await this.door).judge(write);
  }
}

export class DeferredSearch extends OpenedOnce<GovernedSearch> implements GovernedSearch {
  async text(className: unknown, request: TextSearchRequest) {
    return (await this.door).text(className, request);
  }

  async autocomplete(className: unknown, request: AutocompleteRequest) {
    return (await this.door).autocomplete(className, request);
  }

  async facets(className: unknown, request: FacetRequest) {
    return (await this.door).facets(className, request);
  }

  async likeness(className: unknown) {
    return (await this.door).likeness(className);
  }
}

export class DeferredClassWrites extends OpenedOnce<GovernedClassWrites> implements GovernedClassWrites {
  async createClass(className: unknown, fields?: unknown) {
    return (await this.door).createClass(className, fields);
  }

  async deleteClass(className: unknown) {
    return (await this.door).deleteClass(className);
  }
}

export class DeferredMethods extends OpenedOnce<Omit<GovernedMethods, 'writes'>> implements GovernedMethods {
  constructor(
    open: () => Promise<Omit<GovernedMethods, 'writes'>>,
    private readonly openWrites: () => GovernedWrites,
  ) {
    super(open);
  }

  async enter(className: unknown) {
    return (await this.door).enter(className);
  }

  async permit(className: string, permission: Tier, type: 'instance' | 'class') {
    return (await this.door).permit(className, permission, type);
  }

  writes(): GovernedWrites {
    return this.openWrites();
  }

  async present(result: unknown) {
    return (await this.door).present(result);
  }
}
