import type { Provider } from '@nestjs/common';
import { type Embedding, EmbeddingProvider, estimatedTokens } from '#data';
import type { LoadedConfig } from '#config';

/** Stands where the embeddings endpoint is: nothing is sent, and every text means the same. */
class RehearsingEmbeddings extends EmbeddingProvider {
  readonly model = 'rehearsal';

  constructor(readonly dimensions: number) {
    super();
  }

  embed(text: string): Promise<Embedding> {
    const vector = Array.from({ length: this.dimensions }, (_, at) => (at === 0 ? 1 : 0));
    return Promise.resolve({ vector, tokens: estimatedTokens(text) });
  }
}

/** None where none are configured: what would be refused for that is refused here too. */
export function rehearsedEmbeddings({ config: { embeddings } }: LoadedConfig): Provider[] {
  if (!embeddings) return [];
  return [{ provide: EmbeddingProvider, useValue: new RehearsingEmbeddings(embeddings.dimensions) }];
}
