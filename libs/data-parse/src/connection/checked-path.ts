import { isClassName, isObjectId } from '#agent';
import { unstorable } from './parse-faults.js';

/** The address of a class. A name that could lead elsewhere makes none. @throws StoreError `invalid_query` */
export function classPath(className: string, base = '/classes'): string {
  if (!isClassName(className)) throw unstorable('not a class name');
  return `${base}/${className}`;
}

/** @throws StoreError `invalid_query` */
export function rowPath(className: string, objectId: string): string {
  if (!isObjectId(objectId)) throw unstorable('not an object id');
  return `${classPath(className)}/${objectId}`;
}
