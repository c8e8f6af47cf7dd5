/** `interrupted`: Ctrl-C while nothing else was to be interrupted, or nobody waits for it any longer. */
export type Entered =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'end' };
