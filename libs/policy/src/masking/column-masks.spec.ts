import { describe, expect, it } from 'vitest';
import { compileAgentShape } from '#agent';
import { type ClassAccess, columnRefusal } from '../model/class-access.js';
import { FieldNames } from '../model/field-names.js';
import { parseKeys } from '../where/keys.js';
import { compileMasks } from './compile-masks.js';
import { maskedColumns, toldMasks, withoutColumns } from './column-masks.js';
import type { MasksConfig } from './mask-config.js';

const KNOWN = ['objectId', 'name', 'pin', 'card'];

function accessWith(masks: MasksConfig, listed: readonly string[] | null): ClassAccess {
  const names = new FieldNames();
  const given = { masks: compileMasks(masks, '', []), isWithheld: () => false };
  const columns = maskedColumns(
    { ...given, listed: listed && new Set(listed), known: new Set(KNOWN) },
    compileAgentShape('x'),
  );
  if (!columns) throw new Error('nothing is masked');
  return { className: 'Card', schema: undefined, names, ...columns };
}

const told = ({ masks }: ClassAccess) => Object.fromEntries(masks ? toldMasks(masks) : []);
const kindOf = (name: string, access: ClassAccess) =>
  columnRefusal('where', name, name, access)?.details?.kind;

describe('what an agent is told of masks', () => {
  const masks: MasksConfig = { pin: 'deny', card: 'hash', name: 'mask' };

  it('is each form but drop', () => {
    expect(told(accessWith({ ...masks, name: 'drop' }, null))).toEqual({ pin: 'deny', card: 'hash' });
  });

  it('is none of a field outside the allowlist, which is refused as one that does not exist', () => {
    const access = accessWith(masks, ['objectId', 'name']);
    expect(told(access)).toEqual({ name: 'mask' });
    expect(['pin', 'card', 'nowhere', 'name'].map((name) => kindOf(name, access))).toEqual([
      'field_denied',
      'field_denied',
      'field_denied',
      'masked_field',
    ]);
    expect(parseKeys(['pin', 'nowhere'], access)).toEqual(parseKeys(['nowhere'], access));
  });

  it.each([true, false])('is none of a field that permissions hide as well (on some rows: %s)', (perRow) => {
    const access = accessWith(masks, null);
    const hidden = access.masks && withoutColumns(access.masks, { hidden: new Set(['pin']), perRow });
    expect(told({ ...access, ...(hidden && { masks: hidden }) })).toEqual({ card: 'hash', name: 'mask' });
  });
});
