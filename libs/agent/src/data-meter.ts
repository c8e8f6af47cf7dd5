/** Hears what the operations of one call take from the database, as it happens. */
export interface DataMeter {
  /** @param milliseconds that the operation took; @param rows that it handed out */
  spent(milliseconds: number, rows: number): void;
}
