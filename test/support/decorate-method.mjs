/**
 * What a decorator does where TypeScript compiles it, for classes that are not compiled.
 * @param {MethodDecorator} decorator
 * @param {{ prototype: object }} provider
 * @param {string} name of the method
 */
export function decorateMethod(decorator, { prototype }, name) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  if (!descriptor) throw new TypeError(`there is no method ${name}`);
  decorator(prototype, name, descriptor);
}
