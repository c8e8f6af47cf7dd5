import { UnstorableValue } from '../errors.js';
import { isPlainObject, setOwn } from './own-property.js';

/** The three columns that store an ACL; `_acl` is the form that older servers read. */
export interface AccessColumns {
  readonly _rperm: readonly string[];
  readonly _wperm: readonly string[];
  readonly _acl: Readonly<Record<string, { readonly r?: true; readonly w?: true }>>;
}

function grantOf(acl: Record<string, unknown>, principal: string): { read: boolean; write: boolean } {
  const grant = acl[principal];
  if (!isPlainObject(grant))
    throw new UnstorableValue('ACL', `'${principal}' must hold read and write flags`);
  for (const [right, value] of Object.entries(grant)) {
    if ((right !== 'read' && right !== 'write') || typeof value !== 'boolean')
      throw new UnstorableValue('ACL', `'${principal}' may hold only boolean read and write`);
  }
  return { read: grant['read'] === true, write: grant['write'] === true };
}

/** @throws UnstorableValue */
export function aclToColumns(acl: unknown): AccessColumns {
  if (!isPlainObject(acl)) throw new UnstorableValue('ACL', 'must be an object');
  const readers: string[] = [];
  const writers: string[] = [];
  for (const principal of Object.keys(acl)) {
    const { read, write } = grantOf(acl, principal);
    if (read) readers.push(principal);
    if (write) writers.push(principal);
  }
  const legacy: Record<string, { r?: true; w?: true }> = {};
  for (const principal of writers) setOwn(legacy, principal, { w: true });
  for (const principal of readers) setOwn(legacy, principal, { ...legacy[principal], r: true });
  return { _rperm: readers, _wperm: writers, _acl: legacy };
}

const stringsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];

/** The ACL of a stored row, or undefined when it has none and so is public. */
export function columnsToAcl(
  document: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const { _rperm, _wperm, _acl } = document;
  const acl: Record<string, { read?: true; write?: true }> = {};
  const grant = (principal: string, right: 'read' | 'write') =>
    setOwn(acl, principal, { ...(Object.hasOwn(acl, principal) ? acl[principal] : {}), [right]: true });
  if (_rperm !== undefined || _wperm !== undefined) {
    for (const principal of stringsOf(_rperm)) grant(principal, 'read');
    for (const principal of stringsOf(_wperm)) grant(principal, 'write');
    return acl;
  }
  if (!isPlainObject(_acl)) return undefined;
  for (const [principal, rights] of Object.entries(_acl)) {
    if (!isPlainObject(rights)) continue;
    if (rights['r'] === true) grant(principal, 'read');
    if (rights['w'] === true) grant(principal, 'write');
  }
  return acl;
}
