import { addNumbers } from '../bson/arithmetic.js';
import { addDecimals, decimalOfDouble, packDecimal } from '../bson/decimal.js';
import { doubleValue, integerValue, numberKind, toBigInt, toDouble } from '../bson/number.js';

/** A running sum that keeps decimal exactness and reports ints, longs and doubles as the server would. */
export class NumberSum {
  private integers = 0n;
  private doubles = 0;
  private correction = 0;
  private decimal: unknown;
  private widest: 'int' | 'long' | 'double' = 'int';

  add(value: unknown): void {
    const kind = numberKind(value);
    if (kind === undefined) return;
    if (kind === 'decimal')
      this.decimal = this.decimal === undefined ? value : addNumbers(this.decimal, value);
    else if (kind === 'double') {
      this.widest = 'double';
      this.addDouble(toDouble(value));
    } else {
      if (kind === 'long' && this.widest === 'int') this.widest = 'long';
      this.integers += toBigInt(value);
    }
  }

  /** The total in the widest type met. */
  total(): unknown {
    const { widest } = this;
    const doubles = this.doubles + (Number.isFinite(this.correction) ? this.correction : 0);
    if (this.decimal !== undefined) {
      const integers = { coefficient: this.integers, exponent: 0 };
      // Only among themselves doubles are rounded: next to a decimal they count with all their digits.
      const rest = Number.isFinite(doubles)
        ? packDecimal([this.doubles, this.correction].map(decimalOfDouble).reduce(addDecimals, integers))
        : doubles;
      return addNumbers(this.decimal, rest);
    }
    if (widest === 'double') return doubleValue(doubles + Number(this.integers));
    return integerValue(this.integers, widest);
  }

  /** Neumaier's compensation: small terms survive next to large ones. */
  private addDouble(value: number): void {
    const sum = this.doubles + value;
    this.correction +=
      Math.abs(this.doubles) >= Math.abs(value) ? this.doubles - sum + value : value - sum + this.doubles;
    this.doubles = sum;
  }
}
