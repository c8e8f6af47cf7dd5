/** Hears what the operations of one call take from the database, as they happen. */
export interface DataMeter {
  /** An operation begins. @returns called once at its end, with the rows that it handed out */
  begins(): (rows: number) => void;
}
