import { Global, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { EmbeddedDatabase } from '@parley/server';

/** The server of `MONGODB_URI`, or a small one in this process. A real application has the first alone. */
@Injectable()
export class Database implements OnApplicationShutdown {
  private constructor(
    readonly uri: string,
    private readonly close: () => Promise<void> = () => Promise.resolve(),
  ) {}

  static async open(): Promise<Database> {
    const uri = process.env['MONGODB_URI'];
    if (uri !== undefined) return new Database(uri);
    const embedded = await EmbeddedDatabase.start();
    return new Database(embedded.uri, () => embedded.close());
  }

  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}

@Global()
@Module({
  providers: [{ provide: Database, useFactory: () => Database.open() }],
  exports: [Database],
})
export class DatabaseModule {}
