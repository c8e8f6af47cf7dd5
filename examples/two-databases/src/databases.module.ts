import { Global, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { EmbeddedDatabase } from '@parley/server';

/** Two small databases in the place of those of an enterprise: the shop has orders, the CRM has customers. */
@Injectable()
export class Databases implements OnApplicationShutdown {
  constructor(
    readonly shop: EmbeddedDatabase,
    readonly crm: EmbeddedDatabase,
  ) {}

  static async start(): Promise<Databases> {
    const shop = await EmbeddedDatabase.start({
      name: 'shop',
      seed: {
        collections: {
          orders: [
            { _id: 'A-1', total: 120, customer: 'c1', region: 'north' },
            { _id: 'A-2', total: 80, customer: 'c2', region: 'south' },
          ],
        },
      },
    });
    const crm = await EmbeddedDatabase.start({
      name: 'crm',
      seed: {
        collections: {
          customers: [
            { _id: 'c1', name: 'Ines', email: 'ines@example.com', region: 'north' },
            { _id: 'c2', name: 'Jo', email: 'jo@example.com', region: 'south' },
          ],
        },
      },
    });
    return new Databases(shop, crm);
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.shop.close(), this.crm.close()]);
  }
}

@Global()
@Module({
  providers: [{ provide: Databases, useFactory: () => Databases.start() }],
  exports: [Databases],
})
export class DatabasesModule {}
