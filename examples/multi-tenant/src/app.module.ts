import { type DynamicModule, Module } from '@nestjs/common';
import { ParleyModule } from '@parley/server';

/** Every user belongs to one organisation, and so does every row. */
const perOrganisation = { tenantId: { claim: 'org' }, identity: { role: 'agents' } };

export const policy = {
  classes: {
    Invoice: { fields: ['number', 'total', 'customer'], tenantScope: { field: 'org' } },
    Customer: { fields: ['name'], tenantScope: { field: 'org' } },
  },
};
export const agents = {
  reader: { ...perOrganisation, permissions: 'readonly' },
  clerk: { ...perOrganisation, permissions: 'write' },
} as const;

@Module({})
export class AppModule {
  static over({ issuer, audience }: { readonly issuer: string; readonly audience: string }): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ParleyModule.forRoot({
          database: { uri: process.env['MONGODB_URI'] ?? 'embedded', seed: 'seed.json' },
          policy,
          agents,
          auth: [
            {
              agent: 'reader',
              oauth: {
                issuer,
                audience,
                requiredScopes: ['invoices:read'],
                scopes: { 'invoices:write': 'clerk' },
              },
            },
          ],
        }),
      ],
    };
  }
}
