import type { Policy } from '../model/class-policy.js';

/** Something compiled from a policy: once, for as long as that policy is in use. */
export class PerPolicy<T> {
  private readonly made = new WeakMap<Policy, { readonly value: T }>();

  constructor(private readonly compile: (policy: Policy) => T) {}

  of(policy: Policy): T {
    const known = this.made.get(policy);
    if (known) return known.value;
    const value = this.compile(policy);
    this.made.set(policy, { value });
    return value;
  }
}
