import type { ClassAccess } from '../model/class-access.js';
import { type FieldSchema, type FieldType, memberField } from '../model/class-schema.js';
import { takeRoot } from '../model/field-names.js';
import { typeAt, typeOfColumn, type ValueType } from '../model/value-type.js';

/** The column of a condition. `type` is undefined for undeclared columns and inside objects. */
export interface Column {
  readonly className: string;
  readonly path: string;
  readonly type?: FieldType;
  /** Of a pointer column, and of a list of pointers whose class is declared. */
  readonly targetClass?: string;
  /** Of a plain class: what its schema says about the path, inside documents too. */
  readonly stored?: FieldSchema;
  /** What is known of its values. */
  readonly known?: ValueType | undefined;
}

export function columnAt(path: string, access: ClassAccess): Column {
  const { schema } = access;
  const root = takeRoot(path);
  const field = schema?.fields.get(root);
  const inside = path === root ? [] : path.split('.').slice(1);
  const stored = schema?.storage === 'plain' ? memberField(field, inside) : undefined;
  const known = typeAt(typeOfColumn(root, schema), inside, false);
  const column = { className: access.className, path, known, ...(stored && { stored }) };
  if (path !== root || !field) return column;
  const targetClass = field.type === 'Array' && !stored ? access.lists?.get(root) : field.targetClass;
  return { ...column, type: field.type, ...(targetClass && { targetClass }) };
}

export function toMemberColumn({ className, path, stored, known }: Column, key: string): Column {
  const keys = key.split('.');
  const member = memberField(stored, keys);
  return {
    className,
    path: `${path}.${key}`,
    known: typeAt(known, keys, false),
    ...(member && { stored: member }),
  };
}
