/** An already encoded document: the encoder copies its bytes instead of encoding it again. */
export class RawBson {
  constructor(readonly bytes: Buffer) {}
}
